// The agent's small parts: fences, ends of roles and of the job, what roles report.
#include "actors/agent/exit_notices.hpp"
#include "actors/agent/fence_stock.hpp"
#include "actors/agent/grant_wait.hpp"
#include "actors/agent/job_end.hpp"
#include "actors/agent/role_reports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

constexpr protocol::time_point now{std::chrono::hours{1}};

TEST(fence_stock, each_fence_is_used_once_the_oldest_first) {
  fence_stock fences;
  EXPECT_FALSE(fences.take());
  fences.add({{{1}, 10}, {{2}, 20}});
  fences.add({{{1}, 10}, {{2}, 20}, {{3}, 30}});
  EXPECT_EQ(fences.take(), (protocol::fence{{1}, 10}));
  EXPECT_EQ(fences.take(), (protocol::fence{{2}, 20}));
  fences.add({{{2}, 20}});
  EXPECT_EQ(fences.take(), (protocol::fence{{3}, 30}));
  EXPECT_TRUE(fences.empty()) << "granted again is not granted anew";
}

// ---- the end of the job

using protocol::job_outcome;

TEST(job_end, ends_for_the_first_reason) {
  job_end end{std::chrono::seconds(3)};
  EXPECT_FALSE(end.is_begun());
  EXPECT_TRUE(end.begin({job_outcome::failed, "worker 1 died"}));
  EXPECT_FALSE(end.begin({job_outcome::interrupted, "Ctrl-C"}));
  end.hear({job_outcome::interrupted, "Ctrl-C"});
  EXPECT_EQ(end.conclude({job_outcome::failed, "stopped"}).reason, "worker 1 died");
}

/// R38.
TEST(job_end, a_job_that_is_complete_is_so_whatever_was_to_end_it_meanwhile) {
  job_end end{std::chrono::seconds(3)};
  end.begin({job_outcome::interrupted, "Ctrl-C"});
  end.hear({job_outcome::completed, ""});
  EXPECT_EQ(end.conclude({job_outcome::failed, "stopped"}).outcome, job_outcome::completed);
}

TEST(job_end, without_a_reason_the_last_one_counts) {
  job_end end{std::chrono::seconds(3)};
  EXPECT_EQ(end.conclude({job_outcome::failed, "too many restarts"}).reason, "too many restarts");
  EXPECT_FALSE(end.begin({job_outcome::interrupted, "Ctrl-C"}));
}

TEST(job_end, waits_for_the_report_until_the_roles_stop) {
  job_end end{std::chrono::seconds(3)};
  EXPECT_FALSE(end.is_report_late(now)) << "it was not asked for";
  end.await_report(now);
  EXPECT_FALSE(end.is_report_late(now + std::chrono::milliseconds(2999)));
  EXPECT_TRUE(end.is_report_late(now + std::chrono::seconds(3)));
  EXPECT_TRUE(end.stop_roles());
  EXPECT_TRUE(end.is_stopping());
  EXPECT_FALSE(end.is_report_late(now + std::chrono::seconds(3)));
  EXPECT_FALSE(end.stop_roles()) << "they do already";
}

TEST(grant_wait, is_over_when_the_coordinator_has_waited_for_long_enough_at_a_stretch) {
  grant_wait wait{std::chrono::seconds(2)};
  EXPECT_FALSE(wait.is_over(true, now));
  EXPECT_FALSE(wait.is_over(false, now + std::chrono::seconds(1))) << "a grant came";
  EXPECT_FALSE(wait.is_over(true, now + std::chrono::seconds(2)));
  EXPECT_FALSE(wait.is_over(true, now + std::chrono::milliseconds(3999)));
  EXPECT_TRUE(wait.is_over(true, now + std::chrono::seconds(4)));
}

protocol::role_exited exit_of(std::uint64_t start) {
  protocol::role_exited exited;
  exited.role = protocol::worker_role({0});
  exited.self = {{start}, 0};
  return exited;
}

TEST(exit_notices, what_ended_without_a_coordinator_is_told_to_the_next) {
  exit_notices notices;
  EXPECT_TRUE(notices.add(exit_of(1), true, now)) << "told at once";
  EXPECT_FALSE(notices.add(exit_of(2), false, now));
  auto told = notices.for_new_coordinator(now + std::chrono::milliseconds(3));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[0].again) << "one coordinator has heard of it";
  EXPECT_EQ(told[1].self.incarnation, incarnation{2});
  EXPECT_FALSE(told[1].again);
  EXPECT_EQ(told[1].age_us, 3000U) << "since it was noticed";
  told = notices.for_new_coordinator(now + std::chrono::milliseconds(3));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[1].again);
}

TEST(exit_notices, only_the_newest_are_told_again) {
  exit_notices notices;
  for (std::uint64_t start = 1; start <= exit_notices::told_max + 5; ++start)
    notices.add(exit_of(start), true, now);
  const auto told = notices.for_new_coordinator(now + std::chrono::milliseconds(3));
  ASSERT_EQ(told.size(), exit_notices::told_max);
  EXPECT_EQ(told.front().self.incarnation, incarnation{6});
}

protocol::heartbeat beat_of(std::uint32_t shard, std::uint64_t step, std::uint64_t durable_step) {
  protocol::heartbeat beat;
  beat.role = protocol::ps_shard_role({shard});
  beat.state = "training";
  beat.step = step;
  beat.durable_step = durable_step;
  return beat;
}

TEST(role_reports, the_step_is_the_lowest_of_all_ps_shards) {
  role_reports reports(2);
  EXPECT_EQ(reports.step(), 0U);
  reports.hear(beat_of(0, 7, 4));
  EXPECT_EQ(reports.step(), 0U) << "the other one has not said anything";
  reports.hear(beat_of(1, 6, 5));
  EXPECT_EQ(reports.step(), 6U);
  EXPECT_EQ(reports.durable_step(), 4U);
}

TEST(role_reports, a_ps_shard_that_waits_for_its_disk_at_its_start_has_what_it_had) {
  role_reports reports(1);
  auto beat = beat_of(0, 7, 4);
  beat.store = {"alpha", 0xa1, {2}};
  beat.restorable = {{{2}, {4}}};
  reports.hear(beat);
  auto waiting = beat_of(0, 0, 0);
  waiting.self.incarnation = {2};
  waiting.state = "disk-full";
  for (int i = 0; i < 2; ++i) reports.hear(waiting);
  EXPECT_EQ(reports.state(beat.role), "disk-full");
  EXPECT_EQ(reports.step(), 7U);
  EXPECT_EQ(reports.durable_step(), 4U);
  role_view shown{.role = beat.role, .incarnation = {2}, .state = {}};
  reports.add_details(shown);
  EXPECT_EQ(shown.store, beat.store);
  EXPECT_EQ(shown.restorable, beat.restorable);
  beat.self.incarnation = {2};
  beat.step = 4; // it has opened it, and goes on from there
  reports.hear(beat);
  EXPECT_EQ(reports.step(), 4U);
}

TEST(role_reports, the_agent_knows_better_in_which_state_a_role_is) {
  role_reports reports(1);
  EXPECT_EQ(reports.state(protocol::worker_role({0})), "pending");
  reports.hear(beat_of(0, 7, 4));
  EXPECT_EQ(reports.state(protocol::ps_shard_role({0})), "training");
  reports.set_state(protocol::ps_shard_role({0}), "down");
  EXPECT_EQ(reports.state(protocol::ps_shard_role({0})), "down");
  EXPECT_EQ(reports.step(), 7U) << "its next start goes on from there";
}

} // namespace
} // namespace dlrun::agent
