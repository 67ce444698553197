// Of two hosts one is emptied (R37): no host is left for copies.
#include "tests/actors/agent/drained_hosts_fixture.hpp"

namespace dlrun::agent::test_drains {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// PS shard 0 is on alpha with its copy on beta, PS shard 1 the other way round.
class two_hosts : public testing::Test {
protected:
  two_hosts() {
    job.fill_all();
    EXPECT_EQ(job.host_of(shard1), "beta");
    EXPECT_EQ(job.host_of(keeper0), "beta");
    EXPECT_EQ(job.host_of(keeper1), "alpha");
  }
  ~two_hosts() override { EXPECT_FALSE(job.steps.has_lost_any); }

  drained_hosts job{{"beta"}, {.copies_may_wait = true}};
};

TEST_F(two_hosts, one_is_emptied_of_its_ps_shard_and_then_of_its_copy) {
  ASSERT_TRUE(job.drain("beta"));
  const auto gone = job.settle();
  const auto moved = std::ranges::find(gone, "ps_shard 1 leaves");
  const auto given_up = std::ranges::find(gone, "keeper 0 is killed");
  ASSERT_NE(given_up, gone.end());
  EXPECT_LT(moved, given_up);
  EXPECT_EQ(job.host_of(shard1), "alpha");
  EXPECT_TRUE(job.is_drained("beta"));
  EXPECT_THAT(job.roles_on("beta"), IsEmpty());
  for (const auto& copy : {keeper0, keeper1}) EXPECT_EQ(job.host_of(copy), "") << "it waits";
  EXPECT_FALSE(job.view("beta").needs_a_host);
}

TEST_F(two_hosts, a_ps_shard_whose_copy_is_not_whole_stays_until_it_is_and_so_does_the_other_copy) {
  job.die(keeper1);
  ASSERT_TRUE(job.drain("beta"));
  const auto gone = job.settle();
  EXPECT_THAT(gone, Not(Contains(HasSubstr("keeper"))));
  EXPECT_THAT(gone, Not(Contains(HasSubstr("ps_shard"))));
  EXPECT_FALSE(job.is_drained("beta"));
  job.fill(keeper1);
  EXPECT_THAT(job.settle(), Contains("keeper 0 is killed"));
  EXPECT_TRUE(job.is_drained("beta"));
}

TEST_F(two_hosts, that_there_are_no_copies_is_told_at_the_start_and_at_the_end_and_shown) {
  ASSERT_TRUE(job.drain("beta"));
  EXPECT_THAT(job.told(), HasSubstr("moves to other hosts; no copies while beta is drained"));
  EXPECT_TRUE(job.view("beta").without_copies);
  job.settle();
  EXPECT_THAT(job.events(), ElementsAre("host-drained"));
  EXPECT_THAT(job.told(), HasSubstr("may be switched off; no copies while beta is drained"));
  EXPECT_TRUE(job.view("beta").without_copies);
}

TEST_F(two_hosts, the_copies_are_back_when_that_is_undone) {
  ASSERT_TRUE(job.drain("beta"));
  job.settle();
  job.lose("beta"); // it was switched off
  job.come("beta");
  ASSERT_TRUE(job.undo("beta"));
  job.settle();
  for (const auto& copy : {keeper0, keeper1}) EXPECT_EQ(job.host_of(copy), "beta");
  job.fill_all();
  EXPECT_TRUE(job.are_all_whole());
}

TEST_F(two_hosts, or_when_another_host_comes_and_the_drained_one_stays_so) {
  ASSERT_TRUE(job.drain("beta"));
  job.settle();
  job.come("gamma");
  job.settle();
  for (const auto& copy : {keeper0, keeper1}) EXPECT_EQ(job.host_of(copy), "gamma");
  EXPECT_TRUE(job.is_drained("beta"));
  EXPECT_FALSE(job.view("beta").without_copies);
}

/// A keeper that ends there by itself is not started there again either.
TEST_F(two_hosts, a_copy_that_is_lost_on_the_host_meanwhile_waits) {
  ASSERT_TRUE(job.drain("beta"));
  job.die(keeper0);
  EXPECT_EQ(job.host_of(keeper0), "");
}

/// gamma is lost while beta is emptied: what was to be filled there waits.
TEST(three_hosts_of_which_one_is_lost, the_last_but_the_roots_is_emptied_all_the_same) {
  drained_hosts job{{"beta", "gamma"}, {.copies_may_wait = true}};
  job.fill_all();
  ASSERT_TRUE(job.drain("beta"));
  EXPECT_FALSE(job.view("beta").without_copies);
  job.lose("gamma");
  job.settle();
  EXPECT_TRUE(job.view("beta").without_copies);
  EXPECT_EQ(job.host_of(shard1), "beta") << "its copy was on gamma";
  job.fill_all();
  job.settle();
  EXPECT_TRUE(job.is_drained("beta")) << job.view("beta").waits_for;
  EXPECT_FALSE(job.steps.has_lost_any);
}

/// Where the number of stores was asked for.
TEST(two_hosts_with_copies_that_were_asked_for, keep_them_and_the_refusal_names_the_ways_out) {
  drained_hosts job{{"beta"}};
  job.fill_all();
  const auto refused = job.drain("beta");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::bad_usage);
  for (const auto* word :
       {"the job has host alpha alone", "'dlrun token'", "durability.replicas=auto", "durability.replicas=1"})
    EXPECT_THAT(refused.error().message, HasSubstr(word));
}

} // namespace
} // namespace dlrun::agent::test_drains
