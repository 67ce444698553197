#include "data/prefetcher.hpp"

#include "tests/data/files.hpp"

#include <gtest/gtest.h>

namespace dlrun::data {
namespace {

std::shared_ptr<const dataset> make_data(std::uint32_t records) {
  auto data = dataset::open(
      {},
      blob::from_bytes(test::idx_bytes({records, 6}, test::counting(records * std::size_t{6})), "records"),
      blob::from_bytes(test::idx_bytes({records}, test::counting(records)), "labels"));
  return *data;
}

sampler make_sampler(std::uint64_t records) {
  return sampler({.seed = 1,
                  .shuffle = true,
                  .record_count = records,
                  .microbatch_size = 8,
                  .microbatches_per_step = 4,
                  .epochs = 3});
}

/// What the prefetcher must return, read without it.
microbatch direct(const dataset& data, const sampler& order, step_id step, slot_id slot) {
  std::vector<std::uint64_t> indices;
  order.records(step, slot, indices);
  microbatch batch{step, slot, std::vector<float>(indices.size() * data.record_values()),
                   std::vector<std::int32_t>(indices.size()), indices.size()};
  data.read(indices, batch.records, batch.labels);
  return batch;
}

void expect_same(const microbatch& got, const microbatch& want) {
  EXPECT_EQ(got.step, want.step);
  EXPECT_EQ(got.slot, want.slot);
  EXPECT_EQ(got.count, want.count);
  EXPECT_EQ(got.records, want.records);
  EXPECT_EQ(got.labels, want.labels);
}

TEST(prefetcher, returns_what_reading_directly_returns) {
  const auto data = make_data(200);
  const auto order = make_sampler(200);
  for (const std::size_t depth : {1, 2, 5}) {
    prefetcher ahead(data, order, depth);
    microbatch batch;
    const std::uint64_t total = order.total_steps() * 4;
    for (std::uint64_t i = 0; i < total; ++i) {
      for (std::uint64_t j = i; j < std::min(i + depth, total); ++j)
        ahead.request(step_id{j / 4}, slot_id{static_cast<std::uint32_t>(j % 4)});
      const step_id step{i / 4};
      const slot_id slot{static_cast<std::uint32_t>(i % 4)};
      ahead.take(step, slot, batch);
      expect_same(batch, direct(*data, order, step, slot));
    }
  }
}

TEST(prefetcher, reads_what_was_never_requested) {
  const auto data = make_data(100);
  const auto order = make_sampler(100);
  prefetcher ahead(data, order, 2);
  microbatch batch;
  ahead.take(step_id{3}, slot_id{0}, batch);
  expect_same(batch, direct(*data, order, step_id{3}, slot_id{0}));
  ahead.take(step_id{3}, slot_id{0}, batch);
  expect_same(batch, direct(*data, order, step_id{3}, slot_id{0}));
}

TEST(prefetcher, more_requests_than_buffers_lose_the_oldest_and_nothing_else) {
  const auto data = make_data(200);
  const auto order = make_sampler(200);
  prefetcher ahead(data, order, 2);
  for (std::uint64_t step = 0; step < order.total_steps(); ++step)
    for (std::uint32_t slot = 0; slot < 4; ++slot) ahead.request(step_id{step}, slot_id{slot});
  microbatch batch;
  for (std::uint64_t step = order.total_steps(); step-- > 0;) {
    ahead.take(step_id{step}, slot_id{1}, batch);
    expect_same(batch, direct(*data, order, step_id{step}, slot_id{1}));
  }
}

TEST(prefetcher, serves_several_threads_at_once) {
  const auto data = make_data(200);
  const auto order = make_sampler(200);
  prefetcher ahead(data, order, 3);
  const auto work = [&](std::uint32_t slot) {
    microbatch batch;
    for (int round = 0; round < 20; ++round)
      for (std::uint64_t step = 0; step < order.total_steps(); ++step) {
        ahead.request(step_id{step}, slot_id{slot});
        ahead.take(step_id{step}, slot_id{slot}, batch);
        if (round == 0) expect_same(batch, direct(*data, order, step_id{step}, slot_id{slot}));
      }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
}

TEST(prefetcher, can_be_destroyed_at_any_moment) {
  const auto data = make_data(200);
  const auto order = make_sampler(200);
  for (int i = 0; i < 200; ++i) {
    prefetcher ahead(data, order, 4);
    for (int k = 0; k < i % 5; ++k) ahead.request(step_id{static_cast<std::uint64_t>(k)}, slot_id{0});
  }
}

} // namespace
} // namespace dlrun::data
