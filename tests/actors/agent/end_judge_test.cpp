#include "actors/agent/end_judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using protocol::role_kind;
using testing::AllOf;
using testing::HasSubstr;

constexpr protocol::fence third_start{{3}, 30};

/// A worker and a PS shard that were heard a second ago.
class end_judge_test : public testing::Test {
protected:
  end_judge_test() {
    for (const auto& name : {worker.name, shard.name}) {
      signs.begin(name, now);
      signs.hear(name, now);
    }
    now += 1s;
  }
  judged_end died(managed_role& role, const role_end& how, bool is_moved = false) {
    return judge.died(role, third_start, how, signs, is_moved, now);
  }
  /// Until the worker has been silent for so long that it is named.
  void hang() {
    for (int second = 0; second < 20; ++second) signs.tick(now += 1s);
  }

  managed_role worker{.name = {role_kind::worker, 0}};
  managed_role shard{.name = {role_kind::ps_shard, 0}};
  life_signs signs{{}};
  end_judge judge{1, true};
  protocol::time_point now{1h};
};

constexpr protocol::slot_progress deadly_slot{.at = {{128}, {3}}};

TEST_F(end_judge_test, a_death_is_told_with_its_cause_and_how_long_it_went_unnoticed) {
  const auto judged = died(worker, {.cause = "was killed"});
  EXPECT_EQ(judged.event.event, "role-exited");
  EXPECT_EQ(judged.event.text, "worker 0 (incarnation 3) was killed");
  EXPECT_EQ(judged.event.numbers.after_us, 1'000'000U);
  EXPECT_EQ(judged.exited.self, third_start);
  EXPECT_EQ(judged.exited.detected_us, 1'000'000U);
  EXPECT_TRUE(judged.exited.replaced);
  EXPECT_FALSE(judged.exited.has_progress);
  EXPECT_TRUE(judged.exit.settled);
  EXPECT_TRUE(judged.exit.counts);
  EXPECT_TRUE(worker.restart_untold);
  EXPECT_FALSE(why_job_ends(worker));
}

TEST_F(end_judge_test, a_gpu_that_is_avoided_is_told_with_its_host_and_why) {
  const auto event = avoided_event({3, "beta", "it failed"}, worker.name, {7});
  EXPECT_EQ(event.event, "gpu-avoided");
  EXPECT_EQ(event.role, worker.name);
  EXPECT_EQ(event.incarnation.value, 7U);
  EXPECT_EQ(event.text, "GPU 3 of host beta is avoided from now on: it failed");
  EXPECT_EQ(event.place.host, "beta");
  EXPECT_EQ(event.place.reason, "it failed");
}

TEST_F(end_judge_test, a_crash_in_a_slot_counts_against_the_slot_and_not_against_the_budget) {
  const auto judged = died(worker, {.cause = "crashed", .slot = deadly_slot});
  EXPECT_THAT(judged.event.text, HasSubstr("crashed, in slot 3 of step 128"));
  EXPECT_TRUE(judged.exited.has_progress);
  EXPECT_EQ(judged.exited.progress, deadly_slot);
  EXPECT_FALSE(judged.exit.counts);
}

TEST_F(end_judge_test, where_state_is_in_memory_only_no_slot_is_tried_so_its_crashes_use_restarts) {
  judge = {1, false};
  EXPECT_TRUE(died(worker, {.cause = "crashed", .slot = deadly_slot}).exit.counts);
}

TEST_F(end_judge_test, a_slot_that_goes_on_killing_uses_restarts_in_the_end) {
  int excused = 0;
  while (!died(worker, {.cause = "crashed", .slot = deadly_slot}).exit.counts) ++excused;
  EXPECT_EQ(excused, 4);
  judge.set_workers(4);
  EXPECT_FALSE(died(worker, {.cause = "crashed", .slot = deadly_slot}).exit.counts)
      << "there are more who may die";
}

TEST_F(end_judge_test, of_one_that_hung_the_slot_it_was_killed_in_is_the_one_that_counts) {
  hang();
  const auto judged = died(worker, {.cause = "was killed", .slot = std::nullopt, .killed_in = deadly_slot});
  EXPECT_THAT(judged.event.text, HasSubstr("gave no sign of life for 21.0 s, was killed, in slot 3"));
  EXPECT_EQ(judged.exited.progress, deadly_slot);
}

TEST_F(end_judge_test, a_moved_coordinator_and_the_second_role_of_a_lost_host_use_no_restart) {
  managed_role coordinator{.name = {role_kind::coordinator, 0}};
  signs.begin(coordinator.name, now);
  const auto moved = died(coordinator, {.cause = "was killed"}, true);
  EXPECT_FALSE(moved.exit.counts);
  EXPECT_TRUE(moved.exit.settled) << "it starts elsewhere at once";
  EXPECT_FALSE(died(worker, {.cause = "was lost with its host", .is_one_of_several = true}).exit.counts);
}

TEST_F(end_judge_test, a_cause_that_lasts_is_hopeless_only_before_the_first_sign_of_life) {
  died(worker, {.cause = "lacks a library", .is_lasting = true});
  EXPECT_FALSE(worker.is_hopeless) << "it had worked";
  signs.begin(worker.name, now);
  died(worker, {.cause = "lacks a library", .is_lasting = true});
  EXPECT_TRUE(worker.is_hopeless);
  EXPECT_FALSE(worker.restart_untold);
  EXPECT_THAT(why_job_ends(worker).value_or(""),
              AllOf(HasSubstr("worker 0 lacks a library"), HasSubstr("would again")));
}

TEST_F(end_judge_test, a_role_whose_state_is_gone_ends_the_job_with_the_way_out) {
  shard.is_replaceable = false;
  EXPECT_FALSE(died(shard, {.cause = "was killed"}).exited.replaced);
  EXPECT_THAT(why_job_ends(shard).value_or(""),
              AllOf(HasSubstr("ps_shard 0 was killed; with 'durability.log: off'"),
                    HasSubstr("another durability.log")));
}

TEST_F(end_judge_test, one_that_left_uses_no_restart_and_another_follows_unless_fewer_are_wanted) {
  const auto asked = judge.left(worker, third_start, {.cause = "exited", .left = true}, true, 2);
  EXPECT_EQ(asked.event.text, "worker 0 (incarnation 3) has left: it had a SIGTERM");
  EXPECT_TRUE(asked.exited.left && asked.exited.replaced);
  EXPECT_FALSE(asked.exit.counts);
  EXPECT_TRUE(worker.restart_untold);
  worker.dismissed = true;
  const auto dismissed = judge.left(worker, third_start, {.cause = "killed by signal 9"}, true, 2);
  EXPECT_EQ(dismissed.event.text,
            "worker 0 (incarnation 3) has left: 2 workers are wanted (killed by signal 9)");
  EXPECT_FALSE(dismissed.exited.replaced);
  EXPECT_FALSE(worker.restart_untold);
}

} // namespace
} // namespace dlrun::agent
