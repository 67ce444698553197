#include "data/prefetcher.hpp"

#include "data/array_dataset.hpp"
#include "data/idx_reader.hpp"
#include "tests/data/files.hpp"

#include <gtest/gtest.h>

namespace dlrun::data {
namespace {

/// Records of 2 x 3 bytes.
std::shared_ptr<const dataset> make_data(std::uint32_t records) {
  const test::temporary_folder folder;
  memory_budget memory;
  auto decoded =
      decode_idx({.records = folder.write(
                      "records", test::idx_bytes({records, 2, 3}, test::counting(records * std::size_t{6}))),
                  .labels = folder.write("labels", test::idx_bytes({records}, test::counting(records))),
                  .options = {}},
                 memory);
  return *array_dataset::create(std::move(*decoded), {});
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
  microbatch batch;
  batch.step = step;
  batch.slot = slot;
  EXPECT_TRUE(read_microbatch(data, indices, batch));
  return batch;
}

void expect_same(const microbatch& got, const microbatch& want) {
  EXPECT_EQ(got.step, want.step);
  EXPECT_EQ(got.slot, want.slot);
  EXPECT_EQ(got.count, want.count);
  EXPECT_EQ(got.records, want.records);
  EXPECT_EQ(got.classes, want.classes);
  EXPECT_EQ(got.values, want.values);
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
      EXPECT_TRUE(ahead.take(step, slot, batch));
      expect_same(batch, direct(*data, order, step, slot));
    }
  }
}

TEST(prefetcher, reads_what_was_never_requested) {
  const auto data = make_data(100);
  const auto order = make_sampler(100);
  prefetcher ahead(data, order, 2);
  microbatch batch;
  EXPECT_TRUE(ahead.take(step_id{3}, slot_id{0}, batch));
  expect_same(batch, direct(*data, order, step_id{3}, slot_id{0}));
  EXPECT_TRUE(ahead.take(step_id{3}, slot_id{0}, batch));
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
    EXPECT_TRUE(ahead.take(step_id{step}, slot_id{1}, batch));
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
        EXPECT_TRUE(ahead.take(step_id{step}, slot_id{slot}, batch));
        if (round == 0) expect_same(batch, direct(*data, order, step_id{step}, slot_id{slot}));
      }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
}

TEST(prefetcher, changes_records_in_the_same_way_however_they_were_read) {
  const auto data = make_data(64);
  const auto order = make_sampler(64);
  spec::AugmentSpec spec;
  spec.mutable_random_crop()->set_padding(1);
  spec.mutable_horizontal_flip()->set_p(0.5);
  const auto change = augmentation::build(spec, *data);
  ASSERT_TRUE(change);
  prefetcher ahead(data, order, 2, *change);
  microbatch read_ahead, read_late;
  ahead.request(step_id{1}, slot_id{2});
  ASSERT_TRUE(ahead.take(step_id{1}, slot_id{2}, read_ahead));
  ASSERT_TRUE(ahead.take(step_id{1}, slot_id{2}, read_late));
  expect_same(read_ahead, read_late);
  auto expected = direct(*data, order, step_id{1}, slot_id{2});
  (*change)->apply(1, step_id{1}, slot_id{2}, expected.count, expected.records);
  expect_same(read_ahead, expected);
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
