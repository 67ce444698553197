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
                      .takes_over = true}};
  protocol::time_point now{1h};
  std::string refused;
  hosted_actions out;
  const protocol::running_start worker{worker_role({1}), first, 100};
  const protocol::running_start shard{ps_shard_role({1}), first, 101};
};

TEST_F(returned_root_test, takes_over_what_runs_and_orders_it_no_second_time) {
  join(there("beta", 7, {worker, shard}));
  EXPECT_THAT(take_over(), testing::UnorderedElementsAre(worker, shard));
  EXPECT_THAT(out, IsEmpty());
  EXPECT_TRUE(roles.has(worker.role, first));
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
