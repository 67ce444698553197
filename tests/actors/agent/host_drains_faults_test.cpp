// Hosts that are emptied for maintenance (R37): what goes wrong meanwhile, several at once, undone,
// and refused.
#include "tests/actors/agent/drained_hosts_fixture.hpp"

namespace dlrun::agent::test_drains {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

// ---- a root that comes back

TEST_F(three_hosts, a_root_that_comes_back_goes_on_and_says_so_once) {
  ASSERT_TRUE(job.drain("beta"));
  job.look();
  job.return_root();
  job.settle();
  EXPECT_THAT(job.events(), ElementsAre("host-draining"));
  EXPECT_THAT(job.told(), HasSubstr("beta is being drained, as the root before has kept it"));
  EXPECT_EQ(job.host_of(shard1), "beta") << "its copy is not known to be whole";
  for (int turn = 0; turn < 3; ++turn) {
    job.fill_all();
    job.settle();
  }
  EXPECT_TRUE(job.is_drained("beta"));
  EXPECT_THAT(job.roles_on("beta"), IsEmpty());
  EXPECT_THAT(job.events(), ElementsAre("host-draining", "host-drained"));
}

TEST_F(three_hosts, what_is_drained_stays_so_for_the_next_root) {
  ASSERT_TRUE(job.drain("beta"));
  for (int turn = 0; turn < 3; ++turn) {
    job.settle();
    job.fill_all();
  }
  job.settle();
  job.return_root();
  job.step();
  EXPECT_TRUE(job.is_drained("beta"));
  EXPECT_THAT(job.events(), ElementsAre("host-drained", "host-drained"));
  EXPECT_THAT(job.told(), HasSubstr("'dlrun drain --undo'"));
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
  drained_hosts job{{"beta", "gamma"}, {.copies = 0}};
  const auto refused = job.drain("beta");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has the only store of ps_shard 1"));
  EXPECT_THAT(refused.error().message, HasSubstr("durability.replicas=auto"));
  ASSERT_TRUE(job.drain("gamma"));
  job.settle();
  EXPECT_TRUE(job.is_drained("gamma"));
}

} // namespace
} // namespace dlrun::agent::test_drains
