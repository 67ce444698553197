/// coordinator_core where the number of workers changes (R32, R33).
#include "actors/coordinator/coordinator_core.hpp"

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

/// The coordinator of a job with one worker, up to three, and one PS shard, with a journal that
/// answers at once.
class coordinator_scale_test : public testing::Test {
protected:
  static constexpr std::uint64_t agent = 1;

  coordinator_core_config config(std::uint64_t self) {
    coordinator_core_config made;
    made.self = {self};
    made.workers_max = 3;
    made.blocks_of_shard = {{0, 1}};
    made.steps = 10;
    made.is_durable = true;
    made.agent = agent;
    made.random = [this] { return ++token; };
    return made;
  }
  coordinator_actions perform(coordinator_core& core, coordinator_actions actions) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (const auto* one = std::get_if<send_grant>(&actions[i]))
        granted[one->grant.role] = one->grant.fences;
      coordinator_actions more;
      if (const auto* order = std::get_if<journal_fences>(&actions[i])) {
        for (const auto& role : order->roles) {
          std::erase_if(journal.roles, [&](const auto& one) { return one.role == role.role; });
          journal.roles.push_back(role);
        }
        more = core.on_fences_journaled(order->id);
      } else if (const auto* number = std::get_if<journal_workers>(&actions[i])) {
        const auto written = number->what; // `actions` grows
        journal.workers = written;
        more = core.on_workers_journaled(written);
      }
      actions.insert(actions.end(), more.begin(), more.end());
    }
    return actions;
  }
  coordinator_actions scale(coordinator_core& core, std::uint64_t request, std::uint32_t workers) {
    return perform(core, core.on_scale({agent, request, workers}));
  }
  bool start(coordinator_core& core, role_name role, fence self) {
    perform(core, core.on_role_started({role, self, 100}));
    const auto actions = perform(core, core.on_join({role, self, 100, {"somewhere", 1, ""}, "A"}));
    return only<answer_join>(actions).at(0).reply.accepted;
  }

  std::uint64_t token = 1000;
  journaled_job journal;
  std::map<role_name, std::vector<fence>> granted;
  protocol::time_point now{std::chrono::hours(1)};
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
