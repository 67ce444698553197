// Hosts that come by themselves, as the agent sees them.
#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

class joined_hosts_test : public hosted_roles_test {
protected:
  joined_hosts_test() {
    roles = hosted_roles{{.root = "alpha",
                          .root_cpus = 2,
                          .hosts = {{"beta", 0}},
                          .joining = {.root = "alpha",
                                      .hosts_min = 3,
                                      .hosts_max = 4,
                                      .addresses = {{"alpha", "10.0.0.1"}, {"beta", "10.0.0.2"}},
                                      .way_to_join = "hosts join at 10.0.0.1:7700"}}};
    roles.begin(now);
    join("beta", 7);
    roles.on_sighting("beta", 7, {sight::there, 0ms}, now);
  }
  result<admission> admit(const std::string& name, const std::string& address, std::uint32_t cpus = 0) {
    actions.clear();
    return roles.admit({name, address, cpus}, now, actions);
  }
  std::string problem(const std::string& name, const std::string& address) {
    const auto admitted = admit(name, address);
    return admitted ? "" : admitted.error().message;
  }
  std::string awaited() const { return roles.joining().awaited(roles.roster(), roles.places()); }
  hosted_actions actions;
};

TEST_F(joined_hosts_test, the_job_begins_once_as_many_are_there_as_are_wanted) {
  EXPECT_EQ(awaited(), "2 of 3 hosts are there; hosts join at 10.0.0.1:7700");
  const auto first_one = admit("gamma", "10.0.0.3");
  ASSERT_TRUE(first_one);
  EXPECT_EQ(test::the_only<job_event>(actions).event, "host-enrolled");
  EXPECT_EQ(first_one->index, 2U); // behind those of the list
  EXPECT_THAT(awaited(), HasSubstr("2 of 3 hosts are there, 1 get ready"));
  join("gamma", 8);
  EXPECT_EQ(refused, "");
  EXPECT_EQ(awaited(), "");
  EXPECT_EQ(admit("delta", "10.0.0.4")->index, 3U);
}

TEST_F(joined_hosts_test, the_job_does_not_begin_on_hosts_that_may_go_where_it_wants_others) {
  roles = hosted_roles{{.root = "alpha",
                        .root_cpus = 2,
                        .joining = {.root = "alpha",
                                    .hosts_min = 2,
                                    .hosts_min_staying = 2,
                                    .addresses = {{"alpha", "10.0.0.1"}},
                                    .way_to_join = "hosts join at 10.0.0.1:7700"}}};
  roles.begin(now);
  ASSERT_TRUE(admit("gamma", "10.0.0.3"));
  roles.on_joined({.host = "gamma", .boot = 8, .cpus = 2, .preemptible = true}, now, refused);
  ASSERT_TRUE(admit("epsilon", "10.0.0.5"));
  roles.on_joined({.host = "epsilon", .boot = 10, .cpus = 2, .takes = protocol::host_takes::workers}, now,
                  refused);
  ASSERT_TRUE(admit("delta", "10.0.0.4"));
  EXPECT_EQ(awaited(),
            "1 of 2 hosts are there on which PS shards stay, beside 2 where they do not, 1 get ready; "
            "hosts join at 10.0.0.1:7700");
  join("delta", 9);
  EXPECT_EQ(awaited(), "");
}

TEST_F(joined_hosts_test, new_roles_run_on_a_host_that_joined) {
  ASSERT_TRUE(admit("gamma", "10.0.0.3", 64));
  roles.start(worker_role({0}), first, now);
  EXPECT_THAT(sent<protocol::start_order>(roles.start(worker_role({1}), first, now)).size(), 1U);
  join("gamma", 8);
  EXPECT_EQ(test::the_only<to_host>(roles.start(worker_role({2}), first, now)).host, "gamma");
  EXPECT_EQ(roles.dismiss("over").size(), 2U);
}

TEST_F(joined_hosts_test, refuses_names_and_addresses_that_the_job_has_and_more_hosts_than_may_be) {
  EXPECT_THAT(problem("alpha", "10.0.0.9"), HasSubstr("the one where the root runs"));
  EXPECT_THAT(problem("beta", "10.0.0.2"), HasSubstr("one of the list"));
  EXPECT_THAT(problem("gamma", "10.0.0.1"), HasSubstr("10.0.0.1 is the address of host alpha"));
  EXPECT_THAT(problem("gamma", "10.0.0.2"), HasSubstr("10.0.0.2 is the address of host beta"));
  ASSERT_TRUE(admit("gamma", "10.0.0.3"));
  EXPECT_THAT(problem("delta", "10.0.0.3"), HasSubstr("the address of host gamma"));
  ASSERT_TRUE(admit("delta", "10.0.0.4"));
  EXPECT_THAT(problem("epsilon", "10.0.0.5"), HasSubstr("the job has 4 hosts, and join.hosts_max"));
  join("gamma", 8);
  pass(4s, {{"beta", 7}}); // gamma answers nothing
  EXPECT_EQ(roles.roster().state_of("gamma"), host_state::away);
  EXPECT_TRUE(admit("epsilon", "10.0.0.3"));
}

TEST_F(joined_hosts_test, a_host_that_joined_and_is_lost_may_join_again_and_has_the_same_place) {
  const auto before = admit("gamma", "10.0.0.3").value();
  join("gamma", 8);
  roles.start(worker_role({0}), first, now);
  roles.start(worker_role({1}), first, now);
  ASSERT_EQ(test::the_only<to_host>(roles.start(worker_role({2}), first, now)).host, "gamma");
  roles.on_sighting("gamma", 8, {sight::there, 0ms}, now);
  const auto lost = roles.on_sighting("gamma", 8, {sight::silent, 800ms}, now);
  EXPECT_EQ(test::the_only<tell_launch>(lost).role, worker_role({2}));
  EXPECT_THAT(sent<protocol::dismissal>(lost).at(0).reason, HasSubstr("the host was given up"));
  EXPECT_THAT(all_of<run_command>(pass(1min, {{"beta", 7}})), IsEmpty());
  const auto again = admit("gamma", "10.0.0.3");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->index, before.index);
  join("gamma", 9);
  EXPECT_EQ(refused, "");
}

/// As pods are, where one replaces another that may still run.
TEST_F(joined_hosts_test, of_two_with_one_name_one_is_let_in_at_a_time_and_none_that_was_given_up) {
  EXPECT_EQ(roles.joining().address_of("gamma"), "");
  ASSERT_TRUE(admit("gamma", "10.0.0.3"));
  EXPECT_THAT(problem("gamma", "10.0.0.4"), HasSubstr("is joining already"));
  join("gamma", 8);
  EXPECT_THAT(problem("gamma", "10.0.0.4"), HasSubstr("is there"));
  EXPECT_EQ(roles.joining().address_of("gamma"), "10.0.0.3") << "that of the one that is in";
  roles.on_sighting("gamma", 8, {sight::there, 0ms}, now);
  roles.on_sighting("gamma", 8, {sight::silent, 800ms}, now);
  ASSERT_TRUE(admit("gamma", "10.0.0.4"));
  EXPECT_EQ(roles.joining().address_of("gamma"), "10.0.0.4");
  join("gamma", 8);
  EXPECT_THAT(refused, HasSubstr("was given up"));
  join("gamma", 9);
  EXPECT_EQ(refused, "");
  EXPECT_THAT(problem("gamma", "10.0.0.3"), HasSubstr("is there"));
}

TEST_F(joined_hosts_test, a_ps_shard_waits_for_a_joined_host_with_its_store_as_for_one_of_the_list) {
  ASSERT_TRUE(admit("gamma", "10.0.0.3"));
  join("gamma", 8);
  roles.start(ps_shard_role({0}), first, now); // one is with the root, one on beta
  roles.start(ps_shard_role({1}), first, now);
  ASSERT_EQ(test::the_only<to_host>(roles.start(ps_shard_role({2}), first, now)).host, "gamma");
  roles.on_sighting("gamma", 8, {sight::there, 0ms}, now);
  roles.on_sighting("gamma", 8, {sight::silent, 800ms}, now);
  EXPECT_THAT(test::the_only<job_event>(roles.start(ps_shard_role({2}), second, now)).event,
              testing::StrEq("role-waits"));
  for (const auto& order : sent<protocol::start_order>(pass(9s, {{"beta", 7}})))
    EXPECT_EQ(order.role, ps_shard_role({1})) << "which beta has not answered";
  ASSERT_TRUE(admit("gamma", "10.0.0.3")); // with a new token, in time
  const auto orders = sent<protocol::start_order>(join("gamma", 9));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders.at(0).role, ps_shard_role({2}));
  EXPECT_EQ(orders.at(0).boot, 9U);
}

TEST_F(joined_hosts_test, a_ps_shard_waits_for_no_joined_host_that_has_left) {
  ASSERT_TRUE(admit("gamma", "10.0.0.3"));
  join("gamma", 8);
  for (const std::uint32_t shard : {0, 1, 2}) roles.start(ps_shard_role({shard}), first, now);
  ASSERT_EQ(roles.places().find(ps_shard_role({2}))->host, "gamma");
  roles.on_joined({.host = "gamma", .boot = 8, .pid = 100, .cpus = 0}, now, refused); // it is to leave
  EXPECT_EQ(roles.roster().state_of("gamma"), host_state::away);
  for (const auto& told : all_of<job_event>(roles.start(ps_shard_role({2}), second, now)))
    EXPECT_EQ(told.event, "role-placed");
}

TEST_F(joined_hosts_test, a_dismissal_is_repeated_to_those_that_have_not_gone) {
  EXPECT_EQ(sent<protocol::dismissal>(roles.dismiss("the job is over")).size(), 1U);
  roles.on_link_lost("beta", 7, now); // and what was said with it
  join("beta", 7);
  EXPECT_EQ(refused, "");
  const auto again = sent<protocol::dismissal>(roles.tick(now));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.at(0).reason, "the job is over");
  EXPECT_THAT(sent<protocol::dismissal>(roles.tick(now += 100ms)), IsEmpty());
  EXPECT_EQ(sent<protocol::dismissal>(roles.tick(now += 500ms)).size(), 1U);
  join("beta", 9);
  EXPECT_EQ(refused, "the job is over") << "another start of it";
}

TEST_F(joined_hosts_test, nobody_joins_a_job_that_lets_none_in) {
  roles = hosted_roles{{.root = "alpha"}};
  EXPECT_THAT(problem("gamma", "10.0.0.3"), HasSubstr("has no 'join:'"));
  EXPECT_EQ(awaited(), "");
}

} // namespace
} // namespace dlrun::agent::test_hosts
