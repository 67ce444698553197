#include "data/sampler.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace dlrun::data {
namespace {

sampler_options options(std::uint64_t records, std::uint64_t microbatch, std::uint32_t k,
                        std::uint64_t epochs = 2) {
  return {.seed = 3,
          .shuffle = true,
          .record_count = records,
          .microbatch_size = microbatch,
          .microbatches_per_step = k,
          .epochs = epochs};
}

std::vector<std::uint64_t> records_of(const sampler& s, std::uint64_t step, std::uint32_t slot) {
  std::vector<std::uint64_t> out;
  s.records(step_id{step}, slot_id{slot}, out);
  return out;
}

std::vector<std::uint64_t> epoch_order(const sampler& s, std::uint64_t epoch) {
  std::vector<std::uint64_t> order;
  for (std::uint64_t step = epoch * s.steps_per_epoch(); step < (epoch + 1) * s.steps_per_epoch(); ++step)
    for (std::uint32_t slot = 0; slot < s.options().microbatches_per_step; ++slot) {
      const auto part = records_of(s, step, slot);
      order.insert(order.end(), part.begin(), part.end());
    }
  return order;
}

TEST(sampler, every_record_appears_once_an_epoch) {
  for (const auto& [records, microbatch, k] : {std::tuple{1, 32, 4},
                                               {10, 1, 1},
                                               {100, 7, 3},
                                               {128, 32, 4},
                                               {129, 32, 4},
                                               {1000, 32, 7},
                                               {997, 10, 6}}) {
    const sampler s(options(static_cast<std::uint64_t>(records), static_cast<std::uint64_t>(microbatch),
                            static_cast<std::uint32_t>(k)));
    for (const std::uint64_t epoch : {0, 1}) {
      auto order = epoch_order(s, epoch);
      std::sort(order.begin(), order.end());
      ASSERT_EQ(order.size(), static_cast<std::size_t>(records));
      for (std::size_t i = 0; i < order.size(); ++i)
        ASSERT_EQ(order[i], i) << records << " records, epoch " << epoch;
    }
  }
}

TEST(sampler, keeps_the_last_partial_step) {
  const sampler s(options(300, 32, 4)); // 2 full steps of 128 records, then 44: a full slot and one of 12
  EXPECT_EQ(s.steps_per_epoch(), 3U);
  EXPECT_EQ(s.total_steps(), 6U);
  for (const std::uint64_t last : {2, 5}) {
    EXPECT_EQ(s.slots(step_id{last}), 2U);
    EXPECT_EQ(s.records_in_step(step_id{last}), 44U);
    EXPECT_EQ(s.records_in_slot(step_id{last}, slot_id{0}), 32U);
    EXPECT_EQ(s.records_in_slot(step_id{last}, slot_id{1}), 12U);
    EXPECT_EQ(s.records_in_slot(step_id{last}, slot_id{2}), 0U);
    EXPECT_TRUE(records_of(s, last, 3).empty());
  }
  EXPECT_EQ(s.slots(step_id{3}), 4U);
  EXPECT_EQ(s.records_in_step(step_id{3}), 128U);
}

TEST(sampler, counts_what_it_returns) {
  const sampler s(options(997, 10, 6));
  for (std::uint64_t step = 0; step < s.total_steps(); ++step) {
    std::uint64_t sum = 0;
    std::uint32_t filled = 0;
    for (std::uint32_t slot = 0; slot < 6; ++slot) {
      const auto count = records_of(s, step, slot).size();
      EXPECT_EQ(count, s.records_in_slot(step_id{step}, slot_id{slot}));
      sum += count;
      filled += count > 0 ? 1 : 0;
    }
    EXPECT_EQ(sum, s.records_in_step(step_id{step}));
    EXPECT_EQ(filled, s.slots(step_id{step}));
    EXPECT_GE(filled, 1U);
  }
}

TEST(sampler, no_step_mixes_two_epochs) {
  const sampler s(options(300, 32, 4, 3));
  EXPECT_EQ(s.epoch_of(step_id{2}), 0U);
  EXPECT_EQ(s.epoch_of(step_id{3}), 1U);
  EXPECT_EQ(s.epoch_of(step_id{8}), 2U);
}

TEST(sampler, each_epoch_and_each_seed_has_its_own_order) {
  auto o = options(1000, 32, 4);
  const sampler s(o);
  EXPECT_NE(epoch_order(s, 0), epoch_order(s, 1));
  o.seed = 4;
  EXPECT_NE(epoch_order(sampler(o), 0), epoch_order(s, 0));
  EXPECT_EQ(epoch_order(sampler(s.options()), 0), epoch_order(s, 0));
}

TEST(sampler, the_order_of_records_does_not_depend_on_how_they_are_cut) {
  EXPECT_EQ(epoch_order(sampler(options(1000, 32, 4)), 1), epoch_order(sampler(options(1000, 10, 7)), 1));
}

TEST(sampler, without_shuffle_goes_in_file_order) {
  auto o = options(100, 8, 4);
  o.shuffle = false;
  const auto order = epoch_order(sampler(o), 1);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
}

TEST(sampler, counts_the_records_up_to_a_version) {
  auto o = options(300, 32, 4); // steps of 128, 128 and 44
  o.epochs = 3;
  const sampler s(o);
  std::uint64_t sum = 0;
  for (std::uint64_t step = 0; step < s.total_steps(); ++step) {
    EXPECT_EQ(s.records_up_to({step}), sum) << step;
    sum += s.records_in_step({step});
  }
  EXPECT_EQ(s.records_up_to({s.total_steps()}), 900U);
}

TEST(sampler, takes_its_options_from_the_specification) {
  spec::TrainSpec train;
  train.set_epochs(5);
  train.set_microbatch_size(16);
  train.set_microbatches_per_step(7);
  train.set_seed(9);
  train.set_shuffle(false);
  const auto o = sampler_options_from(train, 60'000);
  EXPECT_EQ(o.epochs, 5U);
  EXPECT_EQ(o.microbatch_size, 16U);
  EXPECT_EQ(o.microbatches_per_step, 7U);
  EXPECT_EQ(o.seed, 9U);
  EXPECT_FALSE(o.shuffle);
  EXPECT_EQ(o.record_count, 60'000U);
}

TEST(sampler_death, places_that_do_not_exist_are_broken_invariants) {
  const sampler s(options(300, 32, 4));
  std::vector<std::uint64_t> out;
  EXPECT_DEATH(s.records(step_id{6}, slot_id{0}, out), "step 6 of 6");
  EXPECT_DEATH(s.records(step_id{0}, slot_id{4}, out), "slot 4 of 4");
  EXPECT_DEATH(sampler(options(0, 32, 4)), "nothing to sample");
}

TEST(validation_sampler, goes_through_all_records_in_order) {
  const validation_sampler s(100, 32);
  EXPECT_EQ(s.slots(), 4U);
  std::vector<std::uint64_t> order, part;
  for (std::uint64_t slot = 0; slot < s.slots(); ++slot) {
    s.records(slot, part);
    EXPECT_EQ(part.size(), s.records_in_slot(slot));
    order.insert(order.end(), part.begin(), part.end());
  }
  ASSERT_EQ(order.size(), 100U);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
  EXPECT_EQ(s.records_in_slot(3), 4U);
}

} // namespace
} // namespace dlrun::data
