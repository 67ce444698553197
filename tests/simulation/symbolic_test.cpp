#include "tests/simulation/symbolic.hpp"

#include <gtest/gtest.h>

namespace dlrun::simulation {
namespace {

TEST(symbolic, a_sum_does_not_depend_on_the_order_of_two_but_on_that_of_three) {
  EXPECT_EQ(sum(1, 2), sum(2, 1));
  EXPECT_NE(sum(sum(1, 2), 3), sum(1, sum(2, 3)));
}

TEST(symbolic, a_gradient_depends_on_everything_it_is_made_of) {
  const auto one = slot_gradient({0}, {1}, {2}, 3);
  EXPECT_EQ(one, slot_gradient({0}, {1}, {2}, 3));
  EXPECT_NE(one, slot_gradient({1}, {1}, {2}, 3));
  EXPECT_NE(one, slot_gradient({0}, {2}, {2}, 3));
  EXPECT_NE(one, slot_gradient({0}, {1}, {3}, 3));
  EXPECT_NE(one, slot_gradient({0}, {1}, {2}, 4));
}

TEST(symbolic, the_last_step_of_an_epoch_is_shorter_and_its_last_slot_too) {
  job_shape job;
  job.slots = 4;
  job.steps = 6;
  job.steps_per_epoch = 3;
  job.slots_of_last = 2;
  job.records_of_last = 1;
  EXPECT_EQ(job.slots_of({1}), 4U);
  EXPECT_EQ(job.slots_of({2}), 2U);
  EXPECT_EQ(job.records_of({1}), 16U);
  EXPECT_EQ(job.records_of({2}), 5U);
}

TEST(symbolic, the_undisturbed_run_has_a_version_for_each_step_and_shard) {
  job_shape job;
  job.ps_shards = 2;
  job.slots = 3;
  job.steps = 4;
  const oracle truth(job);
  EXPECT_EQ(truth.parameters({0}, {1}), initial({1}));
  EXPECT_NE(truth.parameters({4}, {0}), truth.parameters({3}, {0}));
  EXPECT_NE(truth.whole_parameters({4}), truth.whole_parameters({3}));
}

} // namespace
} // namespace dlrun::simulation
