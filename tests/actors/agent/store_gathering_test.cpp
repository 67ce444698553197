// A root that comes back to a job that is complete, for the stores on beta and gamma (R38).
#include "actors/agent/store_gathering.hpp"

#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

constexpr last_stores last{.ps_shards = 2, .version = {100}, .timeline = {1}};

protocol::held_store store_of(std::uint32_t shard, std::uint64_t end = 100, std::uint64_t timeline = 1) {
  return {.shard = {shard}, .opener = {3}, .timeline = {timeline}, .end = {end}};
}

class store_gathering_test : public testing::Test {
protected:
  static hosted_roles_config config() {
    hosted_roles_config made{.root = "alpha", .root_cpus = 2, .hosts = {{"beta", 0}, {"gamma", 0}}};
    made.root_stores = {store_of(0)};
    made.root_process = 5;
    made.takes_over = true;
    made.gathers = last;
    return made;
  }
  void begin(hosted_roles_config how = config()) {
    roles = hosted_roles{std::move(how)};
    roles.begin(now);
  }
  hosted_actions join(const std::string& host, std::uint64_t boot,
                      std::vector<protocol::held_store> stores = {},
                      std::vector<protocol::running_start> running = {}) {
    protocol::host_joined there{.host = host, .boot = boot, .pid = 100, .cpus = 2};
    there.root = 4;
    there.stores = std::move(stores);
    there.running = std::move(running);
    auto out = roles.on_joined(there, now, refused);
    EXPECT_EQ(refused, "");
    return out;
  }
  void end_on_beta(const role_name& role) {
    roles.on_report({.host = "beta",
                     .boot = 7,
                     .role = role,
                     .self = first,
                     .state = start_state::ended,
                     .why = "killed"},
                    now);
  }
  void fail_start_of(const std::string& host) { roles.on_command_ended(host, 1, "exited with code 7", now); }
  gathered_stores decide() { return gathering.decide(roles, now); }
  gathered_stores decide_after(protocol::duration time) {
    now += time;
    return decide();
  }

  protocol::time_point now{1h};
  std::string refused;
  hosted_actions out;
  hosted_roles roles{config()};
  store_gathering gathering{last};
  const gathered_stores from_beta{.is_settled = true, .bring = {{{1}, "beta"}}};
  const gathered_stores lacking{.is_settled = true, .missing = {{1}}};
};

TEST_F(store_gathering_test, brings_what_is_not_here_from_where_it_is_once_all_hosts_are_there) {
  begin();
  EXPECT_FALSE(decide().is_settled);
  join("beta", 7, {store_of(1)});
  EXPECT_FALSE(decide_after(1s).is_settled) << "gamma is to hear that the job is over";
  join("gamma", 8);
  EXPECT_EQ(decide_after(1s), from_beta);
}

TEST_F(store_gathering_test, waits_for_the_others_no_longer_than_a_while_once_all_is_found) {
  begin();
  join("beta", 7, {store_of(1)});
  EXPECT_FALSE(decide().is_settled);
  EXPECT_EQ(decide_after(store_gathering::patience), from_beta);
}

TEST_F(store_gathering_test, waits_for_a_host_that_is_being_started_as_long_as_its_start_takes) {
  begin();
  join("gamma", 8);
  EXPECT_FALSE(decide_after(50s).is_settled);
  join("beta", 7, {store_of(1)});
  EXPECT_EQ(decide_after(1s), from_beta);
}

TEST_F(store_gathering_test, gives_up_a_while_after_the_last_start_has_failed) {
  begin();
  join("gamma", 8);
  EXPECT_FALSE(decide_after(50s).is_settled);
  fail_start_of("beta");
  EXPECT_FALSE(decide().is_settled) << "it is tried again";
  EXPECT_EQ(decide_after(store_gathering::patience), lacking);
}

TEST_F(store_gathering_test, gives_up_where_all_are_there_and_nobody_has_it) {
  begin();
  join("beta", 7);
  join("gamma", 8);
  EXPECT_FALSE(decide().is_settled) << "one may have been lost, and come back";
  EXPECT_EQ(decide_after(store_gathering::patience), lacking);
}

TEST_F(store_gathering_test, waits_for_hosts_that_have_to_join_as_long_as_that_takes) {
  auto how = config();
  how.hosts = {};
  how.joining = {.root = "alpha", .hosts_min = 2, .hosts_max = 4, .way_to_join = "hosts join at ..."};
  begin(how);
  EXPECT_FALSE(decide_after(1h).is_settled);
  ASSERT_TRUE(roles.admit({"beta", "10.0.0.2", 2}, now, out));
  EXPECT_FALSE(decide_after(30s).is_settled) << "it gets ready";
  join("beta", 7);
  EXPECT_FALSE(decide().is_settled) << "another one may join";
  EXPECT_EQ(decide_after(store_gathering::patience), lacking);
}

TEST_F(store_gathering_test, takes_no_store_that_does_not_lead_to_the_last_version) {
  begin();
  join("beta", 7, {store_of(1, 99)});
  join("gamma", 8, {store_of(1, 100, 0)});
  decide();
  EXPECT_EQ(decide_after(store_gathering::patience), lacking)
      << "one is short, one of a timeline that was left";
}

TEST_F(store_gathering_test, takes_a_copy_where_the_store_is_not) {
  begin();
  join("beta", 7, {store_of(1, 90)});
  join("gamma", 8, {store_of(1)});
  EXPECT_EQ(decide(), (gathered_stores{.is_settled = true, .bring = {{{1}, "gamma"}}}));
}

TEST_F(store_gathering_test, brings_nothing_that_is_here) {
  auto how = config();
  how.root_stores.push_back(store_of(1));
  begin(how);
  join("beta", 7, {store_of(1)});
  join("gamma", 8);
  EXPECT_EQ(decide(), gathered_stores{.is_settled = true});
}

TEST_F(store_gathering_test, brings_a_store_in_place_of_one_here_that_is_older) {
  auto how = config();
  how.root_stores = {store_of(0, 60)};
  begin(how);
  join("beta", 7, {store_of(0), store_of(1)});
  join("gamma", 8);
  EXPECT_EQ(decide(), (gathered_stores{.is_settled = true, .bring = {{{0}, "beta"}, {{1}, "beta"}}}));
}

TEST_F(store_gathering_test, kills_what_runs_and_then_takes_the_store_of_the_ps_shard_that_did) {
  begin();
  const protocol::running_start shard{ps_shard_role({1}), first, 101};
  const protocol::running_start worker{worker_role({1}), first, 102};
  const auto stops = sent<protocol::stop_order>(join("beta", 7, {}, {shard, worker}));
  ASSERT_EQ(stops.size(), 2U);
  for (const auto& one : stops) EXPECT_EQ(one.how, protocol::stop_how::kill);
  join("gamma", 8);
  EXPECT_FALSE(decide_after(20s).is_settled) << "they have not ended";
  for (const auto& one : {shard, worker}) end_on_beta(one.role);
  EXPECT_EQ(decide(), from_beta);
}

TEST_F(store_gathering_test, asks_a_host_that_was_to_leave_before_this_root_came) {
  begin();
  protocol::host_joined leaving{.host = "beta", .boot = 7, .pid = 100, .cpus = 0, .root = 4};
  leaving.stores = {store_of(1)};
  leaving.running = {{worker_role({1}), first, 102}};
  const auto told = roles.on_joined(leaving, now, refused);
  EXPECT_THAT(sent<protocol::dismissal>(told), IsEmpty());
  const auto stops = sent<protocol::stop_order>(told);
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].how, protocol::stop_how::kill) << "it would wait for PS shards in order to leave";
  join("gamma", 8);
  end_on_beta(worker_role({1}));
  EXPECT_THAT(sent<protocol::dismissal>(roles.tick(now)), IsEmpty());
  EXPECT_EQ(decide(), from_beta);
}

TEST_F(store_gathering_test, gives_up_though_hosts_that_are_off_are_tried_again_and_again) {
  begin();
  join("gamma", 8);
  fail_start_of("beta");
  decide();
  now += 1s;
  ASSERT_EQ(all_of<run_command>(roles.tick(now)).size(), 1U) << "which hangs from now on";
  EXPECT_EQ(decide_after(store_gathering::patience), lacking);
}

TEST_F(store_gathering_test, asks_a_host_that_is_to_leave_all_the_same) {
  begin();
  join("beta", 7, {store_of(1)});
  join("gamma", 8);
  roles.on_joined({.host = "beta", .boot = 7, .pid = 100, .cpus = 0, .root = 4}, now, refused);
  EXPECT_THAT(sent<protocol::dismissal>(roles.tick(now)), IsEmpty());
  EXPECT_EQ(decide(), from_beta);
  const auto told = sent<protocol::dismissal>(roles.dismiss("the job is over"));
  EXPECT_EQ(told.size(), 2U) << "now it may go";
}

} // namespace
} // namespace dlrun::agent::test_hosts
