/// coordinator_core where the number of workers changes (R32, R33).
#include "tests/actors/coordinator/journaling_test.hpp"
#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::fence;
using protocol::role_name;
using protocol::worker_role;
using test::only;
using testing::IsEmpty;
using testing::SizeIs;

/// One worker, up to three.
class coordinator_scale_test : public journaling_test {
protected:
  coordinator_core_config config(std::uint64_t self) {
    auto made = journaling_test::config(self);
    made.workers_max = 3;
    return made;
  }
  coordinator_actions scale(coordinator_core& core, std::uint64_t request, std::uint32_t workers) {
    return perform(core, core.on_scale({agent, request, workers}));
  }
  bool start(coordinator_core& core, role_name role, fence self) {
    perform(core, core.on_role_started({role, self, 100}));
    const auto actions = perform(core, core.on_join({role, self, 100, {"somewhere", 1, ""}, "A"}));
    return only<answer_join>(actions).at(0).reply.accepted;
  }

  coordinator_core core{config(1)};
};

TEST_F(coordinator_scale_test, a_number_is_journaled_before_it_is_said_or_granted) {
  perform(core, core.on_agent());
  const auto actions = core.on_scale({agent, 1, 3});
  EXPECT_THAT(actions, SizeIs(1));
  const auto order = test::the_only<journal_workers>(actions);
  EXPECT_EQ(order.what.workers, 3U);
  const auto done = perform(core, core.on_workers_journaled(order.what));
  EXPECT_EQ(only<send_workers_wanted>(done).at(0).message, (protocol::workers_wanted{agent, 1, 3}));
  EXPECT_THAT(granted[worker_role({2})], SizeIs(3));
}

TEST_F(coordinator_scale_test, without_a_journal_it_counts_at_once) {
  auto plain = config(1);
  plain.is_durable = false;
  coordinator_core other(plain);
  perform(other, other.on_agent());
  const auto actions = other.on_scale({agent, 1, 2});
  EXPECT_THAT(only<journal_workers>(actions), IsEmpty());
  EXPECT_EQ(only<send_workers_wanted>(actions).at(0).message.workers, 2U);
}

TEST_F(coordinator_scale_test, a_successor_says_the_number_and_lets_in_who_runs) {
  perform(core, core.on_agent());
  scale(core, 1, 3);
  const auto third = granted[worker_role({2})].front();
  coordinator_core next(config(2), journal);
  const auto hello = perform(next, next.on_agent());
  EXPECT_EQ(only<send_workers_wanted>(hello).at(0).message, (protocol::workers_wanted{agent, 1, 3}));
  EXPECT_TRUE(start(next, worker_role({2}), third));
}

TEST_F(coordinator_scale_test, a_worker_that_is_not_wanted_any_more_is_known_until_it_has_left) {
  perform(core, core.on_agent());
  scale(core, 1, 3);
  const auto third = granted[worker_role({2})].front();
  scale(core, 2, 1);
  EXPECT_TRUE(start(core, worker_role({2}), third)) << "its start was on its way";
  protocol::role_exited left{
      .role = worker_role({2}), .self = third, .cause = "ended with exit code 143", .left = true};
  const auto gone = perform(core, core.on_role_exited(left, now));
  EXPECT_THAT(only<protocol::worker_gone>(gone), SizeIs(1));
  EXPECT_THAT(core.recoveries().all(), IsEmpty()) << "nothing is lost";
}

TEST_F(coordinator_scale_test, incarnations_of_a_worker_that_comes_back_go_on_after_a_restart) {
  perform(core, core.on_agent());
  scale(core, 1, 3);
  const auto third = granted[worker_role({2})].back();
  scale(core, 2, 1);
  coordinator_core next(config(2), journal);
  perform(next, next.on_agent());
  perform(next,
          next.on_role_exited({.role = worker_role({2}), .self = third, .cause = "", .left = true}, now));
  granted.clear();
  scale(next, 3, 3);
  EXPECT_GT(granted[worker_role({2})].front().incarnation, third.incarnation);
}

TEST_F(coordinator_scale_test, a_job_that_is_over_has_no_other_number_of_workers) {
  perform(core, core.on_agent());
  core.ending().fail("it diverged");
  perform(core, core.ending().on_report_written({protocol::job_outcome::failed, "it diverged"}));
  EXPECT_THAT(scale(core, 1, 2), IsEmpty());
}

} // namespace
} // namespace dlrun::coordinator
