// Hosts that are emptied for maintenance (R37): what goes next, whatever happens meanwhile.
#include "tests/actors/agent/drained_hosts_fixture.hpp"

#include <random>

namespace dlrun::agent::test_drains {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr auto shard0 = ps_shard_role({0});
constexpr auto shard1 = ps_shard_role({1});
constexpr auto keeper0 = keeper_role({0});
constexpr auto keeper1 = keeper_role({1});

/// PS shard 0 is on alpha, 1 on beta; the copies are on gamma. Each has a worker.
class three_hosts : public testing::Test {
protected:
  three_hosts() {
    job.fill_all();
    EXPECT_EQ(job.host_of(shard0), "alpha");
    EXPECT_EQ(job.host_of(shard1), "beta");
    EXPECT_EQ(job.host_of(keeper0), "gamma");
    EXPECT_EQ(job.host_of(keeper1), "gamma");
  }
  std::string refusal(const result<void>& done) {
    EXPECT_FALSE(done.has_value());
    if (done) return "";
    EXPECT_EQ(done.error().code, error_code::bad_usage);
    return done.error().message;
  }

  drained_hosts job{{"beta", "gamma"}};
};

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
  job.fill(1);
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
  job.fill(0);
  EXPECT_THAT(job.settle(), ElementsAre("keeper 1 is killed"));
  EXPECT_EQ(job.host_of(keeper1), "alpha");
  EXPECT_FALSE(job.is_drained("gamma"));
  job.fill(1);
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
  job.fill(0);
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
  job.fill(1);
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
  EXPECT_FALSE(job.is_idle());
  for (int told = 0; told < 3; ++told) EXPECT_THAT(job.look_who_stays(), ElementsAre("ps_shard 1"));
  job.pass(2 * host_drains::move_patience);
  EXPECT_THAT(job.look(), IsEmpty()) << "it is not killed any more";
  job.of(shard1).is_leaving = false;
  job.look();
  EXPECT_THAT(job.look_who_stays(), IsEmpty());
  EXPECT_TRUE(job.is_idle());
}

TEST_F(three_hosts, so_does_one_whose_copy_is_lost_and_is_asked_again_when_another_is_whole) {
  ASSERT_TRUE(job.drain("beta"));
  ASSERT_THAT(job.look(), Contains("ps_shard 1 leaves"));
  job.die(keeper1);
  EXPECT_THAT(job.look_who_stays(), ElementsAre("ps_shard 1"));
  job.of(shard1).is_leaving = false;
  job.look();
  job.fill(1);
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
  EXPECT_TRUE(job.is_idle());
}

/// It has no fence for its next start yet, say.
TEST(a_coordinator, that_could_not_be_asked_is_asked_again_and_not_killed) {
  drained_hosts job{{"beta", "gamma"}, {.coordinator_moves = true}};
  job.fill_all();
  ASSERT_TRUE(job.drain(job.host_of(coordinator)));
  ASSERT_THAT(job.look(), Contains("coordinator 0 ends"));
  job.not_asked(coordinator);
  job.pass(host_drains::end_patience);
  EXPECT_THAT(job.look(), Contains("coordinator 0 ends"));
}

// ---- what goes wrong meanwhile

TEST_F(three_hosts, a_host_that_is_lost_while_it_is_drained_has_nothing_left_to_move) {
  ASSERT_TRUE(job.drain("beta"));
  job.lose("beta");
  EXPECT_EQ(job.host_of(shard1), "gamma") << "its copy";
  EXPECT_THAT(job.settle(), IsEmpty());
  EXPECT_FALSE(job.is_drained("beta"));
  job.fill_all();
  job.settle();
  EXPECT_TRUE(job.is_drained("beta"));
  job.come("beta");
  EXPECT_THAT(job.settle(), IsEmpty());
  EXPECT_THAT(job.roles_on("beta"), IsEmpty());
}

TEST_F(three_hosts, a_copy_that_is_lost_meanwhile_is_waited_for_anew) {
  ASSERT_TRUE(job.drain("beta"));
  job.lose("gamma"); // both copies
  job.settle();
  EXPECT_EQ(job.host_of(shard1), "beta") << "its store is there";
  EXPECT_EQ(job.host_of(keeper1), "alpha");
  job.fill_all();
  job.settle();
  EXPECT_EQ(job.host_of(shard1), "alpha");
}

/// gamma and beta are the last two but the root's, where PS shard 0 is.
TEST_F(three_hosts, without_another_host_the_copy_stays_there_and_that_is_told) {
  ASSERT_TRUE(job.drain("gamma"));
  job.lose("beta"); // PS shard 1 begins from its copy on gamma, which is all that there is
  job.settle();
  EXPECT_EQ(job.host_of(shard1), "gamma");
  EXPECT_EQ(job.host_of(keeper0), "gamma") << "better than none";
  EXPECT_TRUE(job.view("gamma").needs_a_host);
  EXPECT_THAT(job.view("gamma").waits_for,
              HasSubstr("the copy of ps_shard 0, for which there is no other host"));
  job.fill_all();
  job.settle();
  EXPECT_EQ(job.host_of(shard1), "alpha") << "its copy";
  job.come("beta");
  job.settle();
  for (int turn = 0; turn < 3; ++turn) {
    job.fill_all();
    job.settle();
  }
  EXPECT_TRUE(job.is_drained("gamma"));
}

TEST_F(three_hosts, once_drained_it_stays_so_when_a_copy_is_lost_elsewhere) {
  ASSERT_TRUE(job.drain("beta"));
  job.settle();
  job.fill_all();
  job.settle();
  job.die(keeper0);
  job.settle();
  EXPECT_TRUE(job.is_drained("beta"));
}

TEST(a_drained_host, is_drained_anew_when_a_ps_shard_has_to_start_there) {
  drained_hosts job{{"beta", "gamma", "delta"}};
  job.fill_all();
  const auto host = job.host_of(keeper0);
  ASSERT_TRUE(job.drain(host));
  for (int turn = 0; turn < 3; ++turn) {
    job.settle();
    job.fill_all();
  }
  job.settle();
  ASSERT_TRUE(job.is_drained(host));
  job.places().keep(shard0, host, "no other host in reach has a store");
  job.settle();
  EXPECT_EQ(job.events().back(), "host-draining");
  EXPECT_EQ(job.view(host).stage, drain_stage::draining);
}

// ---- several, and undone

TEST(two_drains, empty_both_hosts_through_the_copies_on_the_others) {
  drained_hosts job{{"beta", "gamma", "delta"}};
  job.fill_all();
  const auto first = job.host_of(shard1);
  const auto second = job.host_of(keeper1);
  ASSERT_TRUE(job.drain(first));
  ASSERT_TRUE(job.drain(second));
  EXPECT_THAT(job.settle(), Not(Contains("ps_shard 1 leaves")))
      << "its copy is on a host that is drained, too";
  for (int turn = 0; turn < 6; ++turn) {
    job.fill_all();
    job.settle();
  }
  for (const auto& host : {first, second}) {
    EXPECT_TRUE(job.is_drained(host)) << host << ": " << job.view(host).waits_for;
    EXPECT_THAT(job.roles_on(host), IsEmpty());
  }
}

TEST_F(three_hosts, undone_nothing_more_leaves_and_it_is_used_again) {
  ASSERT_TRUE(job.drain("gamma"));
  job.settle(); // one copy is given up
  ASSERT_TRUE(job.undo("gamma"));
  EXPECT_THAT(job.settle(), IsEmpty());
  EXPECT_EQ(job.host_of(keeper1), "gamma");
  job.die(keeper1);
  EXPECT_EQ(job.host_of(keeper1), "gamma");
}

// ---- refused

TEST_F(three_hosts, what_cannot_be_drained_is_refused_with_the_reason_and_the_way_out) {
  EXPECT_THAT(refusal(job.drain("delta")), HasSubstr("its hosts are alpha, beta, gamma"));
  EXPECT_THAT(refusal(job.drain("alpha")), HasSubstr("'dlrun resume --hosts'"));
  ASSERT_TRUE(job.drain("beta"));
  EXPECT_THAT(refusal(job.drain("beta")), HasSubstr("is draining already"));
  EXPECT_THAT(refusal(job.drain("gamma")), HasSubstr("the job has host alpha alone"));
  EXPECT_THAT(refusal(job.undo("gamma")), HasSubstr("is not being drained"));
  EXPECT_THAT(refusal(job.undo("delta")), HasSubstr("there is no host delta"));
}

TEST_F(three_hosts, while_the_job_ends_nothing_moves_any_more) {
  job.end();
  EXPECT_EQ(refusal(job.drain("beta")), "the job is ending");
}

TEST(without_copies, a_host_with_a_ps_shard_is_refused_and_one_without_is_drained) {
  drained_hosts job{{"beta", "gamma"}, {.keeps_copies = false}};
  const auto refused = job.drain("beta");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has the only store of ps_shard 1"));
  EXPECT_THAT(refused.error().message, HasSubstr("durability.replicas=2"));
  ASSERT_TRUE(job.drain("gamma"));
  job.settle();
  EXPECT_TRUE(job.is_drained("gamma"));
}

// ---- whatever happens

/// Hosts are lost while all copies are whole and come back, roles die, drains begin and are undone,
/// in any order: when that is over every host that is still to be empty gets so, and none was
/// called drained that had a role, or the only whole copy.
class any_faults : public testing::TestWithParam<unsigned> {
protected:
  static inline const std::vector<std::string> others{"beta", "gamma", "delta", "epsilon"};

  unsigned any(unsigned below) { return std::uniform_int_distribution<unsigned>{0, below - 1}(source); }
  const std::string& any_host() { return others[any(4)]; }
  void disturb() {
    const auto& host = any_host();
    switch (any(7)) {
    case 0: static_cast<void>(job.drain(host)); break;
    case 1: static_cast<void>(job.undo(host)); break;
    case 2: job.die(any(2) ? ps_shard_role({any(2)}) : keeper_role({any(2)})); break;
    case 3: job.die(any(2) ? worker_role({any(3)}) : coordinator); break;
    case 4:
      if (!job.places().has_host(host))
        job.come(host);
      else if (job.are_all_whole())
        job.lose(host);
      break;
    default: job.fill(any(2));
    }
  }

  std::mt19937 source{GetParam()};
  drained_hosts job{others, {.coordinator_moves = true}};
};

TEST_P(any_faults, hosts_get_empty_in_the_end_and_none_is_called_drained_before) {
  const auto expect_sound = [&](const drain_steps& steps) {
    for (const auto& [host, stage] : steps.changes)
      if (stage == drain_stage::drained) {
        EXPECT_THAT(job.roles_on(host), IsEmpty()) << host;
        EXPECT_TRUE(job.are_all_whole()) << host;
      }
    for (const auto& one : steps.departures) job.die(one.role);
  };
  for (int turn = 0; turn < 200; ++turn) {
    disturb();
    expect_sound(job.step());
  }
  for (const auto& host : others)
    if (!job.places().has_host(host)) job.come(host);
  for (int turn = 0; turn < 20; ++turn) {
    job.fill_all();
    expect_sound(job.step());
  }
  for (const auto& [host, stage] : job.stages()) {
    EXPECT_EQ(stage, drain_stage::drained) << host << ": " << job.view(host).waits_for;
    EXPECT_THAT(job.roles_on(host), IsEmpty()) << host;
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, any_faults, testing::Range(1U, 201U));

} // namespace
} // namespace dlrun::agent::test_drains
