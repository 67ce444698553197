// Hosts that are emptied for maintenance (R37): what goes next.
#include "tests/actors/agent/drained_hosts_fixture.hpp"

namespace dlrun::agent::test_drains {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// ---- of a host of a PS shard

TEST_F(three_hosts, a_ps_shard_ends_when_its_copy_is_whole_and_starts_from_that) {
  ASSERT_TRUE(job.drain("beta"));
  EXPECT_THAT(job.settle(), Contains("ps_shard 1 leaves"));
  EXPECT_EQ(job.host_of(shard1), "gamma");
  EXPECT_THAT(job.places().find(shard1)->reason, HasSubstr("a whole copy; beta is drained"));
  EXPECT_EQ(job.host_of(keeper1), "alpha") << "not beta again";
}

TEST_F(three_hosts, one_whose_copy_is_not_whole_stays_until_it_is) {
  job.die(keeper1); // another one begins to fill it
  ASSERT_TRUE(job.drain("beta"));
  EXPECT_THAT(job.settle(), Not(Contains("ps_shard 1 leaves")));
  EXPECT_THAT(job.view("beta").waits_for, HasSubstr("ps_shard 1, until its copy on another host is whole"));
  job.die(shard1); // it has its store there, and nowhere else
  EXPECT_EQ(job.host_of(shard1), "beta");
  job.fill(keeper1);
  EXPECT_THAT(job.settle(), ElementsAre("ps_shard 1 leaves"));
}

TEST_F(three_hosts, it_is_drained_when_nothing_runs_there_and_all_copies_are_whole_elsewhere) {
  ASSERT_TRUE(job.drain("beta"));
  job.settle();
  EXPECT_THAT(job.roles_on("beta"), IsEmpty());
  EXPECT_FALSE(job.is_drained("beta"));
  EXPECT_EQ(job.view("beta").waits_for, "the copy of ps_shard 1, until it is whole on another host");
  job.fill_all();
  job.settle();
  EXPECT_TRUE(job.is_drained("beta"));
  EXPECT_EQ(job.view("beta").waits_for, "");
  EXPECT_THAT(job.events(), ElementsAre("host-drained"));
}

TEST_F(three_hosts, what_starts_from_then_on_is_elsewhere) {
  ASSERT_TRUE(job.drain("beta"));
  job.settle();
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    job.die(worker_role({worker}));
    EXPECT_NE(job.host_of(worker_role({worker})), "beta");
  }
  job.die(keeper0);
  EXPECT_NE(job.host_of(keeper0), "beta");
}

// ---- of a host of copies

TEST_F(three_hosts, of_two_copies_one_is_given_up_at_a_time_for_another_that_is_filled_elsewhere) {
  ASSERT_TRUE(job.drain("gamma"));
  auto gone = job.settle();
  EXPECT_THAT(gone, Contains("keeper 0 is killed"));
  EXPECT_THAT(gone, Not(Contains("keeper 1 is killed")));
  EXPECT_THAT(job.view("gamma").waits_for,
              HasSubstr("the copy of ps_shard 1, until that of ps_shard 0 is whole"));
  EXPECT_EQ(job.host_of(keeper0), "beta");
  job.fill(keeper0);
  EXPECT_THAT(job.settle(), ElementsAre("keeper 1 is killed"));
  EXPECT_EQ(job.host_of(keeper1), "alpha");
  EXPECT_FALSE(job.is_drained("gamma"));
  job.fill(keeper1);
  job.settle();
  EXPECT_TRUE(job.is_drained("gamma"));
}

TEST_F(three_hosts, a_copy_is_given_up_only_while_its_ps_shard_runs) {
  job.of(shard0).state = "starting";
  ASSERT_TRUE(job.drain("gamma"));
  EXPECT_THAT(job.settle(), Not(Contains("keeper 0 is killed")));
  EXPECT_THAT(job.view("gamma").waits_for, HasSubstr("the copy of ps_shard 0, until its PS shard runs"));
}

/// Else that would have no copy to go on from: it may not have heard yet that it stays.
TEST_F(three_hosts, nor_when_its_ps_shard_was_asked_to_end) {
  ASSERT_TRUE(job.drain("beta"));
  ASSERT_THAT(job.look(), Contains("ps_shard 1 leaves"));
  ASSERT_TRUE(job.undo("beta"));
  ASSERT_TRUE(job.drain("gamma"));
  EXPECT_THAT(job.look(), Not(Contains("keeper 1 is killed")));
  EXPECT_THAT(job.view("gamma").waits_for, HasSubstr("the copy of ps_shard 1, until its PS shard runs"));
  job.of(shard1).is_leaving = false;
  job.look();
  EXPECT_THAT(job.settle(), Contains("keeper 0 is killed"));
  job.fill(keeper0);
  EXPECT_THAT(job.settle(), Contains("keeper 1 is killed"));
}

/// That of PS shard 0, which is on the only host in use, has no host: it is not waited for.
TEST(of_copies, one_that_can_be_filled_nowhere_holds_up_no_other_one) {
  drained_hosts job{{"beta", "gamma", "delta"}};
  job.fill_all();
  ASSERT_EQ(job.host_of(shard0), "alpha");
  const auto primary = job.host_of(shard1);
  const auto lost = job.host_of(keeper0);
  const auto copy = job.host_of(keeper1);
  ASSERT_NE(lost, copy);
  ASSERT_TRUE(job.drain(primary));
  ASSERT_TRUE(job.drain(copy));
  job.lose(lost);
  EXPECT_EQ(job.host_of(keeper0), "");
  EXPECT_THAT(job.settle(), Contains("keeper 1 is killed"));
  EXPECT_EQ(job.host_of(keeper1), "alpha");
  job.fill(keeper1);
  EXPECT_THAT(job.settle(), Contains("ps_shard 1 leaves"));
  for (const auto& host : {primary, copy}) {
    EXPECT_THAT(job.roles_on(host), IsEmpty());
    EXPECT_TRUE(job.view(host).needs_a_host) << "for the copies";
  }
}

TEST_F(three_hosts, a_keeper_that_dies_there_meanwhile_starts_elsewhere) {
  ASSERT_TRUE(job.drain("gamma"));
  job.die(keeper1);
  EXPECT_EQ(job.host_of(keeper1), "alpha");
}

// ---- workers and the coordinator

TEST(a_coordinator, moves_where_its_journal_can_be_had_from_every_host) {
  drained_hosts job{{"beta", "gamma"}, {.coordinator_moves = true}};
  job.fill_all();
  const auto host = job.host_of(coordinator);
  ASSERT_NE(host, "alpha");
  ASSERT_TRUE(job.drain(host));
  EXPECT_THAT(job.settle(), Contains("coordinator 0 ends"));
  EXPECT_NE(job.host_of(coordinator), host);
}

TEST(drained_workers, leave_at_once_where_others_compute_elsewhere) {
  drained_hosts job{{"beta", "gamma"}, {.workers = 6}};
  job.fill_all();
  const auto on_gamma = job.roles_on("gamma");
  ASSERT_THAT(on_gamma, Contains(HasSubstr("worker")));
  ASSERT_TRUE(job.drain("gamma"));
  const auto gone = job.look();
  for (const auto& one : on_gamma) {
    if (!one.starts_with("worker")) continue;
    EXPECT_THAT(gone, Contains(one + " leaves"));
  }
  EXPECT_THAT(job.look(), Not(Contains(HasSubstr("leaves")))) << "each is asked once";
}

/// Else training would stand still until the first of them computes elsewhere.
TEST(drained_workers, that_need_gpus_keep_the_last_host_that_has_some) {
  drained_hosts job{{"beta", "gamma"}, {.on_gpus = true}};
  job.fill_all();
  ASSERT_TRUE(job.drain("beta"));
  const auto refused = job.drain("gamma");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::bad_usage);
  EXPECT_THAT(refused.error().message, HasSubstr("host gamma has the last GPUs in use"));
  job.come("delta");
  EXPECT_TRUE(job.drain("gamma"));
}

TEST(drained_workers, keep_the_last_host_that_takes_them) {
  using enum protocol::host_takes;
  drained_hosts job{{"beta", "gamma"}, {.takes = {{"alpha", ps_shards}, {"beta", ps_shards}}}};
  job.fill_all();
  const auto refused = job.drain("gamma");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("host gamma is the last one in use that takes workers"));
}

TEST(drained_workers, one_stays_until_another_computes_elsewhere) {
  drained_hosts job{{"beta", "gamma"}, {.workers = 6}};
  job.fill_all();
  for (std::uint32_t worker = 0; worker < 6; ++worker)
    if (job.host_of(worker_role({worker})) != "beta") job.of(worker_role({worker})).state = "starting";
  ASSERT_TRUE(job.drain("beta"));
  const auto on_beta = job.roles_on("beta");
  const auto workers =
      std::ranges::count_if(on_beta, [](const auto& one) { return one.starts_with("worker"); });
  ASSERT_GE(workers, 2);
  const auto gone = job.look();
  EXPECT_EQ(std::ranges::count_if(
                gone, [](const auto& one) { return one.starts_with("worker") && one.ends_with("leaves"); }),
            workers - 1);
  EXPECT_THAT(job.view("beta").waits_for, HasSubstr("until another worker computes elsewhere"));
  for (std::uint32_t worker = 0; worker < 6; ++worker) job.of(worker_role({worker})).state = "training";
  EXPECT_THAT(job.look(), Contains(HasSubstr("leaves")));
}

/// As one of a drain that was undone since.
TEST(drained_workers, who_was_asked_to_leave_does_not_count_as_one_that_computes_elsewhere) {
  drained_hosts job{{"beta", "gamma"}, {.workers = 6}};
  job.fill_all();
  for (std::uint32_t worker = 0; worker < 6; ++worker)
    if (job.host_of(worker_role({worker})) == "alpha") job.of(worker_role({worker})).state = "starting";
  ASSERT_TRUE(job.drain("beta"));
  ASSERT_THAT(job.look(), Contains(HasSubstr("leaves")));
  ASSERT_TRUE(job.undo("beta"));
  ASSERT_TRUE(job.drain("gamma"));
  job.look();
  EXPECT_THAT(job.view("gamma").waits_for, HasSubstr("until another worker computes elsewhere"));
}

TEST(drained_workers, the_only_one_leaves_though_nobody_else_computes) {
  drained_hosts job{{"beta", "gamma"}, {.workers = 1}};
  job.fill_all();
  job.places().keep(worker_role({0}), "beta", "for the test");
  ASSERT_TRUE(job.drain("beta"));
  EXPECT_THAT(job.look(), Contains("worker 0 leaves"));
}

TEST_F(three_hosts, who_does_not_end_in_time_is_killed_but_a_worker_has_the_time_that_it_needs) {
  ASSERT_TRUE(job.drain("beta"));
  const auto asked = job.look();
  EXPECT_THAT(asked, Contains("ps_shard 1 leaves"));
  EXPECT_THAT(job.look(), IsEmpty());
  job.pass(host_drains::move_patience);
  EXPECT_THAT(job.look(), ElementsAre("ps_shard 1 is killed"));
  EXPECT_THAT(job.look(), IsEmpty());
}

/// A large store and a slow link are no reason to lose steps.
TEST_F(three_hosts, a_ps_shard_that_gets_on_is_not_killed_however_long_it_takes) {
  ASSERT_TRUE(job.drain("beta"));
  ASSERT_THAT(job.look(), Contains("ps_shard 1 leaves"));
  for (int minutes = 0; minutes < 60; ++minutes) {
    job.pass(host_drains::move_patience - 1s);
    ++job.of(shard1).progress;
    ASSERT_THAT(job.look(), IsEmpty());
  }
  job.pass(host_drains::move_patience);
  EXPECT_THAT(job.look(), ElementsAre("ps_shard 1 is killed")) << "it has stopped";
}

// ---- a PS shard that stays after all

TEST_F(three_hosts, a_ps_shard_hears_that_its_drain_is_undone_until_it_says_that_it_stays) {
  ASSERT_TRUE(job.drain("beta"));
  ASSERT_THAT(job.look(), Contains("ps_shard 1 leaves"));
  EXPECT_THAT(job.look_who_stays(), IsEmpty());
  ASSERT_TRUE(job.undo("beta"));
  EXPECT_FALSE(job.drains.is_idle());
  for (int told = 0; told < 3; ++told) EXPECT_THAT(job.look_who_stays(), ElementsAre("ps_shard 1"));
  job.pass(2 * host_drains::move_patience);
  EXPECT_THAT(job.look(), IsEmpty()) << "it is not killed any more";
  job.of(shard1).is_leaving = false;
  job.look();
  EXPECT_THAT(job.look_who_stays(), IsEmpty());
  EXPECT_TRUE(job.drains.is_idle());
}

TEST_F(three_hosts, so_does_one_whose_copy_is_lost_and_is_asked_again_when_another_is_whole) {
  ASSERT_TRUE(job.drain("beta"));
  ASSERT_THAT(job.look(), Contains("ps_shard 1 leaves"));
  job.die(keeper1);
  EXPECT_THAT(job.look_who_stays(), ElementsAre("ps_shard 1"));
  job.of(shard1).is_leaving = false;
  job.look();
  job.fill(keeper1);
  EXPECT_THAT(job.look(), Contains("ps_shard 1 leaves"));
}

TEST_F(three_hosts, one_that_is_drained_again_before_it_has_heard_is_asked_again) {
  ASSERT_TRUE(job.drain("beta"));
  ASSERT_THAT(job.look(), Contains("ps_shard 1 leaves"));
  ASSERT_TRUE(job.undo("beta"));
  ASSERT_THAT(job.look_who_stays(), ElementsAre("ps_shard 1"));
  ASSERT_TRUE(job.drain("beta"));
  EXPECT_THAT(job.look(), Contains("ps_shard 1 leaves"));
  EXPECT_THAT(job.look_who_stays(), IsEmpty());
}

TEST_F(three_hosts, one_that_has_ended_all_the_same_needs_to_hear_nothing) {
  ASSERT_TRUE(job.drain("beta"));
  ASSERT_THAT(job.look(), Contains("ps_shard 1 leaves"));
  ASSERT_TRUE(job.undo("beta"));
  job.die(shard1);
  EXPECT_THAT(job.look_who_stays(), IsEmpty());
  EXPECT_TRUE(job.drains.is_idle());
}

/// It has no fence for its next start yet, say.
TEST(a_coordinator, that_could_not_be_asked_is_asked_again_and_not_killed) {
  drained_hosts job{{"beta", "gamma"}, {.coordinator_moves = true}};
  job.fill_all();
  ASSERT_TRUE(job.drain(job.host_of(coordinator)));
  ASSERT_THAT(job.look(), Contains("coordinator 0 ends"));
  job.drains.not_asked(coordinator);
  job.pass(host_drains::end_patience);
  EXPECT_THAT(job.look(), Contains("coordinator 0 ends"));
}

} // namespace
} // namespace dlrun::agent::test_drains
