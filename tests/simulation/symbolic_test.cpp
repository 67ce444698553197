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
  EXPECT_EQ(job.records_of({1}, {3}), 4U);
  EXPECT_EQ(job.records_of({2}, {1}), 1U);
}

TEST(symbolic, the_undisturbed_run_has_a_version_for_each_step_and_shard) {
  job_shape job;
  job.ps_shards = 2;
  job.slots = 3;
  job.steps = 4;
  oracle truth(job);
  const auto trained = course_of(protocol::first_history(), job.steps);
  EXPECT_EQ(truth.parameters(trained, {0}, {1}), initial({1}));
  EXPECT_NE(truth.parameters(trained, {4}, {0}), truth.parameters(trained, {3}, {0}));
  EXPECT_NE(truth.whole_parameters(trained, {4}), truth.whole_parameters(trained, {3}));
}

TEST(symbolic, a_change_of_the_specification_and_a_parked_slot_are_seen_from_their_step_on) {
  job_shape job;
  job.ps_shards = 2;
  job.slots = 3;
  job.steps = 6;
  job.steps_per_epoch = 100;
  oracle truth(job);
  const auto plain = course_of(protocol::first_history(), job.steps);
  const auto changed = course_of(extended(protocol::first_history(), {{1}, {2}, 1, {}}), job.steps);
  const auto parked = course_of(extended(protocol::first_history(), {{1}, {2}, 0, {{{4}, {0}}}}), job.steps);
  EXPECT_EQ(truth.whole_parameters(plain, {2}), truth.whole_parameters(changed, {2}));
  EXPECT_NE(truth.whole_parameters(plain, {3}), truth.whole_parameters(changed, {3}));
  EXPECT_EQ(truth.whole_parameters(plain, {4}), truth.whole_parameters(parked, {4}));
  EXPECT_NE(truth.whole_parameters(plain, {5}), truth.whole_parameters(parked, {5}));
  EXPECT_EQ(truth.records(plain, {6}), truth.records(parked, {6}) + 4);
  const auto one_less =
      course_of(extended(protocol::first_history(), {{1}, {2}, 0, {{{4}, {0}, 2}}}), job.steps);
  EXPECT_NE(truth.whole_parameters(plain, {5}), truth.whole_parameters(one_less, {5}));
  EXPECT_NE(truth.whole_parameters(parked, {5}), truth.whole_parameters(one_less, {5}));
  EXPECT_EQ(truth.records(plain, {6}), truth.records(one_less, {6}) + 1);
}

} // namespace
} // namespace dlrun::simulation
