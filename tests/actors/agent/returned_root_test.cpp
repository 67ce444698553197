// A root that takes over what an earlier one started on beta and gamma (R35).
#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

/// A root that goes on for an earlier one, whose random number was 4; its own is 5.
class returned_root_test : public testing::Test {
protected:
  static protocol::host_joined there(const std::string& host, std::uint64_t boot,
                                     std::vector<protocol::running_start> running, std::uint64_t root = 4) {
    return {.host = host, .boot = boot, .pid = 100, .cpus = 2, .root = root, .running = std::move(running)};
  }
  hosted_actions join(const protocol::host_joined& host) { return roles.on_joined(host, now, refused); }
  std::vector<protocol::running_start> take_over() { return roles.take_over(now, out); }
  hosted_actions end_worker_on_beta() {
    return roles.on_report({.host = "beta",
                            .boot = 7,
                            .role = worker.role,
                            .self = first,
                            .state = start_state::ended,
                            .why = "exited"},
                           now);
  }

  hosted_roles roles{{.root = "alpha",
                      .root_cpus = 2,
                      .hosts = {{"beta", 0}, {"gamma", 0}},
                      .root_process = 5,
                      .takes_over = true,
                      .roots_of_same_job = {4}}};
  protocol::time_point now{1h};
  std::string refused;
  hosted_actions out;
  const protocol::running_start worker{worker_role({1}), first, 100};
  const protocol::running_start shard{ps_shard_role({1}), first, 101};
};

TEST_F(returned_root_test, takes_over_what_runs_and_orders_it_no_second_time) {
  join(there("beta", 7, {worker, shard}));
  EXPECT_THAT(take_over(), testing::UnorderedElementsAre(worker, shard));
  const auto told = all_of<job_event>(out);
  ASSERT_EQ(told.size(), out.size()) << "nothing is ordered";
  ASSERT_EQ(told.size(), 2U);
  for (const auto& one : told) {
    EXPECT_EQ(one.event, "role-placed");
    EXPECT_EQ(one.place.host, "beta");
    EXPECT_EQ(one.incarnation, first.incarnation);
  }
  EXPECT_NE(roles.starts().find(worker.role, first), nullptr);
  EXPECT_EQ(roles.places().find(shard.role)->host, "beta");
  now += 1s;
  EXPECT_THAT(sent<protocol::start_order>(roles.tick(now)), IsEmpty());
  const auto end = end_worker_on_beta();
  EXPECT_EQ(all_of<tell_launch>(end).size(), 1U);
}

TEST_F(returned_root_test, takes_the_newest_start_of_a_role_and_kills_the_others) {
  join(there("beta", 7, {worker}));
  join(there("gamma", 8, {{worker.role, second, 100}}));
  const auto taken = take_over();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken.at(0).self, second);
  EXPECT_EQ(roles.places().find(worker.role)->host, "gamma");
  const auto stops = sent<protocol::stop_order>(out);
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops.at(0).boot, 7U);
  EXPECT_EQ(stops.at(0).how, protocol::stop_how::kill);
}

/// It was away while another root changed the job.
TEST_F(returned_root_test, lets_no_agent_in_whose_root_ran_another_job) {
  join(there("beta", 7, {worker, shard}, 3));
  EXPECT_THAT(refused, HasSubstr("another root"));
  join(there("beta", 8, {worker}));
  EXPECT_EQ(refused, "");
  EXPECT_THAT(take_over(), testing::ElementsAre(worker));
}

/// R37: nothing starts there, and a job of three hosts begins without it.
TEST(returned_root_of_a_drained_host, begins_without_it) {
  const protocol::time_point now{1h};
  hosted_roles roles{{.root = "alpha",
                      .root_cpus = 2,
                      .hosts = {{"beta", 0}, {"gamma", 0}},
                      .drains = {{"beta", drain_stage::drained}},
                      .joining = {.root = "alpha", .hosts_min = 3},
                      .root_process = 5}};
  const auto begun = all_of<run_command>(roles.begin(now));
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0].host, "gamma");
  std::string refused;
  roles.on_joined({.host = "gamma", .boot = 8, .pid = 100, .cpus = 2, .root = 5}, now, refused);
  EXPECT_EQ(refused, "");
  EXPECT_THAT(roles.roster().missing(), IsEmpty());
  EXPECT_EQ(roles.joining().awaited(roles.roster(), roles.places()), "");
  EXPECT_FALSE(roles.places().is_open("beta"));
  const auto undone = all_of<run_command>(roles.set_drain("beta", drain_stage::none, now));
  ASSERT_EQ(undone.size(), 1U);
  EXPECT_EQ(undone[0].host, "beta");
}

TEST_F(returned_root_test, leaves_out_what_has_ended_and_whose_host_is_lost) {
  join(there("beta", 7, {worker}));
  join(there("gamma", 8, {shard}));
  end_worker_on_beta();
  roles.on_sighting("gamma", 8, {sight::silent, 800ms}, now);
  EXPECT_THAT(take_over(), IsEmpty());
}

TEST_F(returned_root_test, kills_what_it_hears_of_too_late) {
  take_over();
  join(there("beta", 7, {worker}));
  const auto actions = roles.on_report(
      {.host = "beta", .boot = 7, .role = worker.role, .self = first, .pid = 100, .why = ""}, now);
  EXPECT_EQ(sent<protocol::stop_order>(actions).size(), 1U);
}

/// Beta is lost with PS shard 1, whose keeper runs on gamma. Here is an old store of it.
TEST_F(returned_root_test, a_ps_shard_waits_until_the_keeper_that_was_taken_over_has_said_what_it_holds) {
  const auto keeper = protocol::keeper_role({1});
  roles = hosted_roles{{.root = "alpha",
                        .root_cpus = 2,
                        .hosts = {{"beta", 0}, {"gamma", 0}},
                        .root_stores = {{{1}, {1}, {0}, {20}}},
                        .root_process = 5,
                        .takes_over = true,
                        .roots_of_same_job = {4}}};
  join(there("gamma", 8, {{keeper, first, 102}}));
  take_over();
  out = roles.start(shard.role, second, now);
  EXPECT_THAT(all_of<start_here>(out), IsEmpty());
  EXPECT_EQ(all_of<job_event>(out).back().event, "role-waits");
  protocol::heartbeat beat{.role = keeper, .self = first};
  roles.on_heartbeat(beat);
  EXPECT_THAT(sent<protocol::start_order>(roles.tick(now += 100ms)), IsEmpty()) << "it has opened nothing";
  beat.store.host = "gamma";
  beat.copies.all = {{.is_known = true, .keeper = first.incarnation, .end = {40}}};
  roles.on_heartbeat(beat);
  const auto ordered = sent<protocol::start_order>(roles.tick(now += 100ms));
  ASSERT_EQ(ordered.size(), 1U);
  EXPECT_EQ(ordered.at(0).boot, 8U);
}

/// delta and epsilon had joined the earlier root by themselves.
class returned_root_and_joined_hosts_test : public returned_root_test {
protected:
  static constexpr auto patience = 2s;
  hosted_roles_config config(std::string way_to_join = "hosts join") const {
    return {.root = "alpha",
            .root_cpus = 2,
            .hosts = {{"beta", 0}},
            .rules = {.start_patience = 1min, .reattach_patience = patience},
            .joining = {.root = "alpha",
                        .addresses = {{"alpha", "10.0.0.1"}, {"beta", "10.0.0.2"}},
                        .way_to_join = std::move(way_to_join)},
            .root_process = 5,
            .takes_over = true,
            .roots_of_same_job = {4},
            .returning = {{{"delta", "10.0.0.4", 0}, 2}, {{"epsilon", "10.0.0.5", 0}, 7}}};
  }
  returned_root_and_joined_hosts_test() {
    roles = hosted_roles{config()};
    roles.begin(now);
    join(there("beta", 7, {}));
  }
  result<admission> admit(const std::string& name, const std::string& address) {
    return roles.admit({name, address, 0}, now, out);
  }
};

TEST_F(returned_root_and_joined_hosts_test,
       takes_over_what_runs_there_and_begins_without_those_that_are_late) {
  EXPECT_EQ(roles.roster().missing(), (std::vector<std::string>{"delta", "epsilon"}));
  join(there("delta", 8, {worker, shard}));
  EXPECT_EQ(refused, "");
  roles.tick(now += patience - 100ms);
  EXPECT_EQ(roles.roster().missing(), std::vector<std::string>{"epsilon"});
  std::vector<std::string> told;
  for (const auto& one : all_of<job_event>(roles.tick(now += 100ms)))
    if (one.event == "host-not-joined") told.push_back(one.place.host);
  EXPECT_EQ(told, std::vector<std::string>{"epsilon"});
  EXPECT_THAT(roles.roster().missing(), IsEmpty());
  EXPECT_THAT(take_over(), testing::UnorderedElementsAre(worker, shard));
  EXPECT_EQ(roles.places().find(shard.role)->host, "delta");
  EXPECT_THAT(all_of<run_command>(roles.tick(now += 1h)), IsEmpty()) << "nobody starts agents there";
}

TEST_F(returned_root_and_joined_hosts_test, one_that_is_late_is_let_in_and_by_a_token_at_any_time) {
  roles.tick(now += patience);
  join(there("delta", 8, {}));
  EXPECT_EQ(refused, "");
  EXPECT_FALSE(admit("delta", "10.0.0.4")) << "it is there";
  const auto again = admit("epsilon", "10.0.0.5");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->index, 7U);
  EXPECT_EQ(admit("zeta", "10.0.0.6")->index, 8U) << "behind all that ever were";
  EXPECT_FALSE(admit("epsilon", "10.0.0.5")) << "it is joining";
}

TEST_F(returned_root_and_joined_hosts_test,
       lets_none_in_whose_place_or_name_the_list_has_or_where_none_may_join) {
  auto changed = config();
  changed.hosts = {{"beta", 0}, {"epsilon", 0}, {"zeta", 0}}; // places 1 to 3
  changed.joining.addresses["epsilon"] = "10.0.0.5";
  roles = hosted_roles{changed};
  join(there("delta", 8, {worker}));
  EXPECT_THAT(refused, HasSubstr("is not one of the job's"));
  EXPECT_EQ(roles.roster().states().size(), 3U);
  roles = hosted_roles{config("")};
  join(there("delta", 8, {worker}));
  EXPECT_THAT(refused, HasSubstr("is not one of the job's"));
}

TEST_F(hosted_roles_test, lets_no_agent_in_that_another_root_started_when_it_takes_nothing_over) {
  hosted_roles other{{.root = "alpha", .root_cpus = 2, .hosts = {{"beta", 0}}, .root_process = 5}};
  other.begin(now);
  EXPECT_THAT(other.on_joined({.host = "beta", .boot = 7, .pid = 100, .cpus = 2, .root = 4}, now, refused),
              IsEmpty());
  EXPECT_THAT(refused, HasSubstr("another root"));
  other.on_joined({.host = "beta", .boot = 8, .pid = 100, .cpus = 2, .root = 5}, now, refused);
  EXPECT_EQ(refused, "");
}

TEST_F(returned_root_test, a_ps_shard_that_it_hears_of_too_late_starts_again_where_its_store_is) {
  take_over();
  join(there("gamma", 8, {shard}));
  roles.on_report({.host = "gamma", .boot = 8, .role = shard.role, .self = first, .pid = 101, .why = ""},
                  now);
  const auto next = sent<protocol::start_order>(roles.start(shard.role, second, now));
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next.at(0).boot, 8U);
}

} // namespace
} // namespace dlrun::agent::test_hosts
