// PS shards that are spread over the hosts (R44).
#include "tests/actors/agent/drained_hosts_fixture.hpp"

namespace dlrun::agent::test_drains {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// alpha is the root's host, beta has come back: both PS shards are on alpha.
class crowded_root : public testing::Test {
protected:
  crowded_root() {
    job.fill_all();
    job.lose("beta");
    job.come("beta");
    job.look(); // copies find a host
    job.fill_all();
    EXPECT_EQ(job.host_of(shard0), "alpha");
    EXPECT_EQ(job.host_of(shard1), "alpha");
  }
  /// What goes once all has been well for long enough.
  std::vector<std::string> look_later() {
    job.look();
    job.pass(shard_spread::patience);
    return job.look();
  }

  drained_hosts job{{"beta"}};
};

TEST_F(crowded_root, gives_one_to_the_host_of_its_copy) {
  EXPECT_THAT(job.look(), IsEmpty()) << "not at once";
  job.pass(shard_spread::patience);
  EXPECT_THAT(job.settle(), ElementsAre("ps_shard 0 leaves"));
  EXPECT_EQ(job.host_of(shard0), "beta");
  EXPECT_THAT(job.places().find(shard0)->reason, HasSubstr("a whole copy; alpha has too many"));
  EXPECT_EQ(job.host_of(keeper0), "alpha");
  job.fill_all();
  EXPECT_THAT(look_later(), IsEmpty()) << "one each";
}

TEST_F(crowded_root, waits_while_a_copy_is_being_filled) {
  job.look();
  job.die(keeper1);
  job.pass(shard_spread::patience);
  EXPECT_THAT(job.look(), IsEmpty());
  job.fill(keeper1);
  EXPECT_THAT(job.look(), IsEmpty()) << "well since now";
  job.pass(shard_spread::patience);
  EXPECT_THAT(job.look(), ElementsAre("ps_shard 0 leaves"));
}

TEST_F(crowded_root, moves_none_while_a_ps_shard_does_not_train) {
  job.of(shard1).state = "disk-full";
  EXPECT_THAT(look_later(), IsEmpty());
}

TEST_F(crowded_root, lets_the_one_that_was_told_stay_when_a_copy_is_lost) {
  ASSERT_THAT(look_later(), ElementsAre("ps_shard 0 leaves"));
  job.of(shard0).state = "moving";
  EXPECT_THAT(job.look(), IsEmpty()) << "it is on its way, and alone";
  job.die(keeper0);
  EXPECT_THAT(job.look_who_stays(), ElementsAre("ps_shard 0"));
  job.die(shard0);
  EXPECT_EQ(job.host_of(shard0), "alpha");
}

TEST_F(crowded_root, kills_none_that_does_not_get_away) {
  ASSERT_THAT(look_later(), ElementsAre("ps_shard 0 leaves"));
  job.pass(host_drains::move_patience);
  EXPECT_THAT(job.look_who_stays(), ElementsAre("ps_shard 0"));
  job.of(shard0).is_leaving = false;
  job.look();
  job.pass(shard_spread::patience);
  EXPECT_THAT(job.look(), ElementsAre("ps_shard 0 leaves")) << "tried again later";
}

TEST_F(three_hosts, none_moves_for_that_while_a_host_is_being_drained) {
  job.lose("beta");
  job.come("beta");
  job.look(); // copies find hosts
  job.fill_all();
  ASSERT_TRUE(job.drain("gamma"));
  job.look();
  job.pass(shard_spread::patience);
  EXPECT_THAT(job.look(), Not(Contains(HasSubstr("ps_shard 0"))));
}

/// PS shards, one after the other.
void move_two(drained_hosts& job) {
  for (int moves = 0; moves < 2; ++moves) {
    job.look();
    job.pass(shard_spread::patience);
    job.settle();
    job.fill_all();
  }
}

TEST(a_spared_root, gives_all_that_it_has_to_hosts_with_cores) {
  drained_hosts job{{"beta"}, {.root_cpus = 0}};
  job.fill_all();
  ASSERT_EQ(job.host_of(shard0), "beta");
  job.lose("beta");
  job.come("beta");
  job.look();
  job.fill_all();
  ASSERT_EQ(job.host_of(shard0), "alpha") << "its copy was there";
  move_two(job);
  EXPECT_EQ(job.host_of(shard0), "beta");
  EXPECT_EQ(job.host_of(shard1), "beta");
}

TEST(a_preemptible_host, gives_its_ps_shards_to_a_host_that_stays) {
  drained_hosts job{{"beta", "gamma"}, {.preemptible = {"alpha"}}};
  job.fill_all();
  ASSERT_EQ(job.host_of(shard0), "beta");
  ASSERT_EQ(job.host_of(shard1), "gamma");
  for (const auto* host : {"beta", "gamma"}) {
    job.lose(host);
    job.look(); // copies find a host
    job.fill_all();
  }
  job.come("beta");
  job.look();
  job.fill_all();
  ASSERT_EQ(job.host_of(shard0), "alpha");
  ASSERT_EQ(job.host_of(shard1), "alpha");
  move_two(job);
  EXPECT_EQ(job.host_of(shard0), "beta");
  EXPECT_EQ(job.host_of(shard1), "beta");
  EXPECT_THAT(job.places().find(shard1)->reason, HasSubstr("; alpha may go at short notice"));
}

/// beta, on which all is, was away: the copies went to gamma, which is worse.
class worse_host : public testing::Test {
protected:
  /// @returns what goes once beta is back and all has been well for a while
  std::vector<std::string> lose_and_bring_back_beta(const job_options& job_is) {
    job.emplace(std::vector<std::string>{"beta", "gamma"}, job_is);
    job->fill_all();
    EXPECT_EQ(job->host_of(keeper0), "beta");
    job->lose("beta");
    job->look(); // copies find a host
    job->fill_all();
    EXPECT_EQ(job->host_of(keeper0), "gamma");
    job->come("beta");
    job->look();
    job->pass(shard_spread::patience);
    return job->look();
  }

  std::optional<drained_hosts> job;
};

TEST_F(worse_host, that_may_go_gives_its_copies_back) {
  EXPECT_THAT(lose_and_bring_back_beta({.preemptible = {"gamma"}}), ElementsAre("keeper 0 is killed"));
  job->die(keeper0);
  EXPECT_EQ(job->host_of(keeper0), "beta");
  EXPECT_THAT(job->places().find(keeper0)->reason, HasSubstr("; gamma may go at short notice"));
  EXPECT_THAT(job->look(), IsEmpty()) << "one at a time";
}

TEST_F(worse_host, that_is_for_workers_gives_its_copies_back) {
  EXPECT_THAT(lose_and_bring_back_beta({.takes = {{"gamma", protocol::host_takes::workers}}}),
              ElementsAre("keeper 0 is killed"));
}

TEST_F(worse_host, that_is_on_the_machine_of_the_ps_shard_gives_its_copies_back) {
  EXPECT_THAT(lose_and_bring_back_beta({.machines = {{"alpha", "m"}, {"gamma", "m"}}}),
              ElementsAre("keeper 0 is killed"));
}

TEST_F(worse_host, keeps_a_copy_that_just_starts_again) {
  static_cast<void>(lose_and_bring_back_beta({.preemptible = {"gamma"}}));
  const auto other = keeper1;
  job->die(other);
  EXPECT_EQ(job->host_of(other), "gamma") << "its store is there";
}

TEST(a_preemptible_host, is_given_no_ps_shard_of_a_crowded_host) {
  drained_hosts job{{"beta"}, {.preemptible = {"beta"}}};
  job.fill_all();
  ASSERT_EQ(job.host_of(shard0), "alpha");
  ASSERT_EQ(job.host_of(shard1), "alpha");
  ASSERT_EQ(job.host_of(keeper0), "beta");
  job.look();
  job.pass(shard_spread::patience);
  EXPECT_THAT(job.look(), IsEmpty());
}

} // namespace
} // namespace dlrun::agent::test_drains
