// Keepers among the roles of several hosts: where they are placed, and who yields to whom.
#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

using protocol::keeper_role;

constexpr ps_shard_id shard0{0};
constexpr ps_shard_id shard1{1};

placement three_hosts_for_copies() {
  placement made{"alpha", 1};
  for (const auto* name : {"alpha", "beta", "gamma"}) made.add_host(name, 2);
  made.put(ps_shard_role(shard0));
  made.put(ps_shard_role(shard1));
  return made;
}

TEST(placement_of_keepers, is_on_another_host_than_the_ps_shard_with_the_fewest_stores) {
  auto hosts = three_hosts_for_copies();
  EXPECT_EQ(hosts.host_of(ps_shard_role(shard1)), "beta");
  EXPECT_EQ(hosts.put(keeper_role(shard0)).host, "gamma");
  EXPECT_EQ(hosts.put(keeper_role(shard1)).host, "gamma") << "of equals not the root's";
  EXPECT_THAT(hosts.find(keeper_role(shard1))->reason, HasSubstr("on another host than beta"));
}

TEST(placement_of_keepers, is_where_a_store_of_the_ps_shard_is_already) {
  auto hosts = three_hosts_for_copies();
  hosts.set_stores("alpha", {{shard1, {1}, {0}, {30}}});
  EXPECT_EQ(hosts.put(keeper_role(shard1)).host, "alpha");
  EXPECT_THAT(hosts.find(keeper_role(shard1))->reason, HasSubstr("a store of ps_shard 1 is there"));
}

TEST(placement_of_keepers, takes_another_host_than_that_of_the_ps_shard_or_none) {
  auto hosts = three_hosts_for_copies();
  EXPECT_FALSE(hosts.can_put(keeper_role({7}))) << "its PS shard has no place yet";
  hosts.remove_host("gamma");
  hosts.remove_host("alpha");
  EXPECT_FALSE(hosts.can_put(keeper_role(shard1)));
  hosts.add_host("alpha", 2);
  EXPECT_TRUE(hosts.can_put(keeper_role(shard1)));
}

TEST(placement_of_keepers, the_ps_shard_goes_to_the_copy_when_its_host_is_lost_and_the_keeper_elsewhere) {
  auto hosts = three_hosts_for_copies();
  hosts.put(keeper_role(shard1));
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.put_on_copy(shard1).host, "gamma");
  EXPECT_THAT(hosts.find(ps_shard_role(shard1))->reason, HasSubstr("a whole copy; beta is lost"));
  EXPECT_TRUE(hosts.share_host(shard1));
  EXPECT_EQ(hosts.put(keeper_role(shard1)).host, "alpha");
  EXPECT_FALSE(hosts.share_host(shard1));
}

/// Also when another host has a store that reaches further, with what was never committed.
TEST(placement_of_keepers, the_ps_shard_goes_to_a_whole_copy_whatever_others_tell_of) {
  auto hosts = three_hosts_for_copies();
  hosts.put(keeper_role(shard1));
  hosts.set_stores("alpha", {{shard1, {1}, {0}, {90}}});
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.put_on_copy(shard1).host, "gamma");
}

TEST(placement_of_keepers, what_a_copy_holds_now_is_what_its_host_has) {
  auto hosts = three_hosts_for_copies();
  hosts.set_stores("gamma", {{shard1, {1}, {0}, {10}}});
  hosts.set_stores("alpha", {{shard1, {1}, {0}, {20}}});
  EXPECT_EQ(*hosts.find_store(shard1), "alpha");
  hosts.note_copy("gamma", {.shard = shard1, .end = {30}});
  EXPECT_EQ(*hosts.find_store(shard1), "gamma");
  hosts.set_stores("gamma", {});
  EXPECT_EQ(*hosts.find_store(shard1), "alpha") << "it came back empty";
}

TEST(placement_of_keepers, after_one_that_was_given_up_another_host_is_taken_if_there_is_one) {
  auto hosts = three_hosts_for_copies();
  hosts.set_stores("gamma", {{shard1, {1}, {0}, {10}}});
  EXPECT_EQ(hosts.put(keeper_role(shard1)).host, "gamma");
  EXPECT_EQ(hosts.put(keeper_role(shard1), true).host, "alpha");
  EXPECT_THAT(hosts.find(keeper_role(shard1))->reason, HasSubstr("it ended on gamma"));
  hosts.remove_host("gamma");
  EXPECT_EQ(hosts.put(keeper_role(shard1), true).host, "alpha");
}

class hosted_copies_test : public hosted_roles_test {
protected:
  hosted_copies_test() {
    roles.start(ps_shard_role(shard0), first, now); // alpha
    roles.start(ps_shard_role(shard1), first, now); // beta
    roles.on_report(report("beta", 7, ps_shard_role(shard1), first, start_state::running), now);
    roles.start(keeper_role(shard1), first, now); // gamma
    roles.on_report(report("gamma", 8, keeper_role(shard1), first, start_state::running), now);
  }
  static copy_facts copy(bool is_whole) { return {.copy = kept_copy{is_whole, first.incarnation}}; }
  static protocol::heartbeat holding(std::uint64_t end) {
    protocol::heartbeat beat{.role = keeper_role(shard1), .self = first, .state = "filling"};
    beat.store.host = "gamma";
    beat.copy = {.is_known = true, .keeper = first.incarnation, .end = {end}};
    return beat;
  }
};

/// R25: it need not wait for the host of its store.
TEST_F(hosted_copies_test, a_ps_shard_starts_from_a_whole_copy_at_once_when_its_host_is_lost) {
  pass(200ms, {{"gamma", 8}});
  const auto out = roles.start(ps_shard_role(shard1), second, now, copy(true));
  EXPECT_EQ(test::the_only<to_host>(out).host, "gamma");
}

TEST_F(hosted_copies_test, it_waits_for_the_host_of_its_store_where_the_copy_is_not_whole) {
  pass(200ms, {{"gamma", 8}});
  const auto out = roles.start(ps_shard_role(shard1), second, now, copy(false));
  EXPECT_THAT(all_of<to_host>(out), IsEmpty());
  EXPECT_EQ(test::the_only<job_event>(out).event, "role-waits");
}

TEST_F(hosted_copies_test, it_waits_for_the_host_of_its_store_where_that_of_the_copy_leaves) {
  roles.on_joined({"gamma", 8, 100, 0}, now, refused); // no cores: it is to leave
  ASSERT_EQ(refused, "");
  pass(200ms, {{"gamma", 8}});
  EXPECT_EQ(test::the_only<job_event>(roles.start(ps_shard_role(shard1), second, now, copy(true))).event,
            "role-waits");
}

TEST_F(hosted_copies_test, it_stays_on_its_host_when_that_is_there) {
  roles.on_report(report("beta", 7, ps_shard_role(shard1), first, start_state::ended), now);
  EXPECT_EQ(test::the_only<to_host>(roles.start(ps_shard_role(shard1), second, now, copy(true))).host,
            "beta");
}

/// Its new folder is empty: the PS shard would begin at version 0 there, and take the copy back.
TEST_F(hosted_copies_test, a_ps_shard_whose_host_came_back_empty_starts_from_the_copy) {
  roles.on_heartbeat(holding(40));
  pass(200ms, {{"gamma", 8}});
  join("beta", 10);
  const auto out = roles.start(ps_shard_role(shard1), second, now, copy(true));
  EXPECT_EQ(test::the_only<to_host>(out).host, "gamma");
}

TEST_F(hosted_copies_test, a_keeper_without_another_host_waits_and_says_so_until_one_is_there) {
  pass(200ms, {{"beta", 7}});
  roles.on_report(report("beta", 7, ps_shard_role(shard1), first, start_state::ended), now);
  auto out = pass(200ms, {});
  roles.start(ps_shard_role(shard1), second, now);
  pass(11s, {}); // alpha is alone, and has it
  ASSERT_EQ(roles.places().host_of(ps_shard_role(shard1)), "alpha");
  out = roles.start(keeper_role(shard1), second, now);
  EXPECT_EQ(std::get<role_runs>(test::the_only<tell_launch>(out).what).pid, 0);
  const auto told = test::the_only<job_event>(out);
  EXPECT_EQ(told.event, "copy-waits");
  EXPECT_THAT(told.text, HasSubstr("ps_shard 1, which has no copy meanwhile"));
  EXPECT_FALSE(roles.places().share_host(shard1)) << "it has no place to yield";
  const auto orders = sent<protocol::start_order>(join("beta", 9));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].role, keeper_role(shard1));
}

TEST_F(hosted_copies_test, a_keeper_that_waits_for_a_host_can_be_stopped) {
  roles.start(keeper_role({5}), first, now); // of a PS shard that has no place
  const auto told =
      test::the_only<tell_launch>(roles.stop(keeper_role({5}), first, protocol::stop_how::end, now));
  EXPECT_TRUE(std::holds_alternative<role_end>(told.what));
  EXPECT_FALSE(roles.has(keeper_role({5}), first));
}

} // namespace
} // namespace dlrun::agent::test_hosts
