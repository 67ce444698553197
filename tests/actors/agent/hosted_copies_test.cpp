// Keepers among the roles of several hosts: where they are placed, and who yields to whom.
#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

using protocol::keeper_role;

constexpr ps_shard_id shard0{0};
constexpr ps_shard_id shard1{1};

placement three_hosts_for_copies() {
  placement made{"alpha", 1};
  for (const auto* name : {"alpha", "beta", "gamma"}) made.add_host(name, {.cpus = 2});
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
  hosts.add_host("alpha", {.cpus = 2});
  EXPECT_TRUE(hosts.can_put(keeper_role(shard1)));
}

/// R37: a drained host is better than none, unless copies may wait.
TEST(placement_of_keepers, stays_on_a_closed_host_where_no_other_is_in_use_unless_it_may_wait) {
  for (const bool may_wait : {false, true}) {
    placement hosts{"alpha", 1, false, may_wait};
    for (const auto* name : {"alpha", "beta"}) hosts.add_host(name, {.cpus = 2});
    hosts.put(ps_shard_role(shard0));
    ASSERT_EQ(hosts.put(keeper_role(shard0)).host, "beta");
    hosts.set_closed("beta", true);
    EXPECT_EQ(hosts.can_put(keeper_role(shard0)), !may_wait);
    hosts.set_closed("beta", false);
    EXPECT_TRUE(hosts.can_put(keeper_role(shard0)));
  }
}

TEST(placement_of_keepers, the_ps_shard_goes_to_the_copy_when_its_host_is_lost_and_the_keeper_elsewhere) {
  auto hosts = three_hosts_for_copies();
  hosts.put(keeper_role(shard1));
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.put_on_copy(shard1, {keeper_role(shard1)}).host, "gamma");
  EXPECT_THAT(hosts.find(ps_shard_role(shard1))->reason, HasSubstr("a whole copy; beta is lost"));
  EXPECT_THAT(keepers_in_the_way(hosts), testing::ElementsAre(keeper_role(shard1)));
  EXPECT_EQ(hosts.put(keeper_role(shard1)).host, "alpha");
  EXPECT_THAT(keepers_in_the_way(hosts), testing::IsEmpty());
}

/// Also when another host has a store that reaches further, with what was never committed.
TEST(placement_of_keepers, the_ps_shard_goes_to_a_whole_copy_whatever_others_tell_of) {
  auto hosts = three_hosts_for_copies();
  hosts.put(keeper_role(shard1));
  hosts.set_stores("alpha", {{shard1, {1}, {0}, {90}}});
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.put_on_copy(shard1, {keeper_role(shard1)}).host, "gamma");
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

// ---- several copies of a PS shard

/// PS shard 1 is on beta, its copies are on delta and gamma.
placement four_hosts_for_copies() {
  placement hosts{"alpha", 1};
  for (const auto* name : {"alpha", "beta", "gamma", "delta"}) hosts.add_host(name, {.cpus = 2});
  hosts.keep(ps_shard_role(shard1), "beta", "");
  for (std::uint32_t copy = 0; copy < 2; ++copy) hosts.put(keeper_role(shard1, copy));
  return hosts;
}

TEST(placement_of_several_copies, each_is_on_a_host_of_its_own) {
  auto hosts = four_hosts_for_copies();
  EXPECT_EQ(hosts.host_of(keeper_role(shard1)), "delta");
  EXPECT_EQ(hosts.host_of(keeper_role(shard1, 1)), "gamma");
  EXPECT_EQ(hosts.put(keeper_role(shard1, 2)).host, "alpha");
  EXPECT_FALSE(hosts.can_put(keeper_role(shard1, 3))) << "there are four hosts";
  EXPECT_EQ(hosts.put(keeper_role(shard1, 1), true).host, "gamma") << "though it ended there";
}

TEST(placement_of_several_copies, the_ps_shard_goes_to_one_that_is_whole_and_there_and_is_furthest) {
  auto hosts = four_hosts_for_copies();
  const std::vector<protocol::role_name> both{keeper_role(shard1), keeper_role(shard1, 1)};
  hosts.note_copy("delta", {.shard = shard1, .end = {50}, .floor = {10}});
  hosts.note_copy("gamma", {.shard = shard1, .end = {40}, .floor = {20}});
  EXPECT_EQ(*hosts.best_copy(shard1, both), both[1]) << "its floor is the newest";
  hosts.note_copy("delta", {.shard = shard1, .timeline = {1}, .end = {30}, .floor = {10}});
  EXPECT_EQ(*hosts.best_copy(shard1, both), both[0]) << "its timeline is the newest";
  hosts.set_closed("delta", true);
  EXPECT_EQ(*hosts.best_copy(shard1, both), both[1]);
  hosts.remove_host("gamma");
  EXPECT_EQ(*hosts.best_copy(shard1, both), both[0]);
  EXPECT_EQ(hosts.best_copy(shard1, {both[1]}), nullptr);
}

TEST(placement_of_several_copies, only_the_keeper_on_the_host_of_the_ps_shard_makes_way) {
  auto hosts = four_hosts_for_copies();
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.put_on_copy(shard1, {keeper_role(shard1, 1)}).host, "gamma");
  EXPECT_THAT(keepers_in_the_way(hosts), testing::ElementsAre(keeper_role(shard1, 1)));
  EXPECT_EQ(hosts.put(keeper_role(shard1, 1)).host, "alpha");
  EXPECT_EQ(hosts.host_of(keeper_role(shard1)), "delta");
  hosts.remove_host("gamma"); // lost too: the start there has said nothing
  EXPECT_EQ(hosts.put_on_copy(shard1, {keeper_role(shard1)}).host, "delta");
}

// ---- hosts that are being drained (R37)

TEST(placement_on_closed_hosts, what_starts_is_elsewhere_and_says_why) {
  auto hosts = three_hosts_for_copies();
  const auto where = hosts.put(worker_role({0})).host;
  ASSERT_NE(where, "alpha");
  hosts.set_closed(where, true);
  EXPECT_FALSE(hosts.is_open(where));
  EXPECT_NE(hosts.put(worker_role({0})).host, where);
  EXPECT_THAT(hosts.find(worker_role({0}))->reason, HasSubstr("; " + where + " is drained"));
  hosts.remove_host(where);
  hosts.add_host(where, {.cpus = 8});
  EXPECT_NE(hosts.put(worker_role({1})).host, where) << "its agent was started again";
  hosts.set_closed(where, false);
  EXPECT_EQ(hosts.put(worker_role({2})).host, where);
}

TEST(placement_on_closed_hosts, a_ps_shard_stays_with_its_store_until_a_copy_on_an_open_host_is_whole) {
  auto hosts = three_hosts_for_copies();
  hosts.put(keeper_role(shard1));
  hosts.set_closed("beta", true);
  EXPECT_EQ(hosts.put(ps_shard_role(shard1)).host, "beta");
  hosts.set_closed("gamma", true);
  EXPECT_EQ(hosts.put_on_copy(shard1, {keeper_role(shard1)}).host, "beta")
      << "that of its copy is closed, too";
  hosts.set_closed("gamma", false);
  EXPECT_EQ(hosts.put_on_copy(shard1, {keeper_role(shard1)}).host, "gamma");
}

TEST(placement_on_closed_hosts, a_keeper_goes_to_an_open_one_and_stays_where_there_is_none) {
  auto hosts = three_hosts_for_copies();
  hosts.put(keeper_role(shard1));
  hosts.set_closed("gamma", true);
  EXPECT_TRUE(hosts.has_open_host_for_copy(keeper_role(shard1)));
  EXPECT_EQ(hosts.put(keeper_role(shard1)).host, "alpha");
  hosts.put(keeper_role(shard0));
  EXPECT_EQ(hosts.host_of(keeper_role(shard0)), "beta");
  hosts.set_closed("beta", true);
  EXPECT_FALSE(hosts.has_open_host_for_copy(keeper_role(shard0)));
  EXPECT_TRUE(hosts.can_put(keeper_role(shard0)));
  EXPECT_EQ(hosts.put(keeper_role(shard0)).host, "beta") << "a copy there is better than none";
  hosts.forget(keeper_role(shard0));
  EXPECT_FALSE(hosts.can_put(keeper_role(shard0))) << "but none is begun there";
}

/// Of stores that are as good; one that has more is worth more than a host that stays.
TEST(placement_on_closed_hosts, stores_there_count_when_no_other_reaches_as_far) {
  placement hosts{"alpha", 1};
  for (const auto* name : {"alpha", "beta", "gamma"}) hosts.add_host(name, {.cpus = 2});
  hosts.set_stores("beta", {{shard1, {1}, {0}, {30}}});
  hosts.set_stores("gamma", {{shard1, {1}, {0}, {30}}});
  hosts.set_closed("beta", true);
  EXPECT_EQ(*hosts.find_store(shard1), "gamma");
  hosts.set_stores("beta", {{shard1, {1}, {0}, {40}}});
  EXPECT_EQ(*hosts.find_store(shard1), "beta");
}

TEST(placement_on_closed_hosts, the_store_that_a_ps_shard_leaves_behind_counts_as_much_as_its_copy) {
  auto hosts = three_hosts_for_copies();
  hosts.put(keeper_role(shard1));
  hosts.set_stores("alpha", {{shard1, {1}, {0}, {20}}}); // of long ago
  hosts.note_copy("gamma", {.shard = shard1, .end = {40}});
  hosts.set_closed("beta", true);
  ASSERT_EQ(hosts.put_on_copy(shard1, {keeper_role(shard1)}).host, "gamma");
  EXPECT_EQ(*hosts.find_store(shard1), "gamma") << "of two that are as good the one on a host in use";
  hosts.remove_host("gamma");
  EXPECT_EQ(hosts.put(ps_shard_role(shard1)).host, "beta");
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
  static copy_facts copy(bool is_whole) {
    return is_whole ? copy_facts{.whole = {keeper_role(shard1)}} : copy_facts{};
  }
  static protocol::heartbeat holding(std::uint64_t end) {
    protocol::heartbeat beat{.role = keeper_role(shard1), .self = first, .state = "filling"};
    beat.store.host = "gamma";
    beat.copies.all = {{.is_known = true, .keeper = first.incarnation, .end = {end}}};
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
  EXPECT_FALSE(is_in_the_way(keeper_role(shard1), roles.places())) << "it has no place to yield";
  const auto orders = sent<protocol::start_order>(join("beta", 9));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].role, keeper_role(shard1));
}

TEST_F(hosted_copies_test, of_two_copies_that_wait_one_gets_the_next_host) {
  roles.start(keeper_role(shard1, 1), first, now); // here
  for (const std::uint32_t copy : {2U, 3U})
    EXPECT_EQ(test::the_only<job_event>(roles.start(keeper_role(shard1, copy), first, now)).event,
              "copy-waits");
  pass(200ms, {{"gamma", 8}});
  roles.start(ps_shard_role(shard1), second, now, copy(true));
  const auto orders = sent<protocol::start_order>(join("beta", 9));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].role, keeper_role(shard1, 2));
  EXPECT_FALSE(roles.places().can_put(keeper_role(shard1, 3)));
}

/// R37.
TEST_F(hosted_copies_test, a_ps_shard_of_a_host_that_is_drained_starts_from_its_whole_copy) {
  roles.set_drain("beta", drain_stage::draining, now);
  roles.on_report(report("beta", 7, ps_shard_role(shard1), first, start_state::ended), now);
  const auto out = roles.start(ps_shard_role(shard1), second, now, copy(true));
  EXPECT_EQ(test::the_only<to_host>(out).host, "gamma");
  EXPECT_THAT(test::the_only<job_event>(out).place.reason, HasSubstr("beta is drained"));
}

/// Until its next copy is whole it has none: what it left behind has all but the steps since then.
TEST_F(hosted_copies_test, and_goes_back_when_the_host_of_the_copy_is_lost_before_the_next_one_is_whole) {
  roles.on_heartbeat(holding(40));
  roles.set_drain("beta", drain_stage::draining, now);
  roles.on_report(report("beta", 7, ps_shard_role(shard1), first, start_state::ended), now);
  roles.start(ps_shard_role(shard1), second, now, copy(true));
  ASSERT_EQ(roles.places().host_of(ps_shard_role(shard1)), "gamma");
  pass(200ms, {{"beta", 7}});
  roles.start(ps_shard_role(shard1), {{3}, 33}, now);
  pass(11s, {{"beta", 7}});
  EXPECT_EQ(roles.places().host_of(ps_shard_role(shard1)), "beta") << "not on an empty disk";
}

TEST_F(hosted_copies_test, and_there_again_while_that_is_not_whole) {
  roles.set_drain("beta", drain_stage::draining, now);
  roles.on_report(report("beta", 7, ps_shard_role(shard1), first, start_state::ended), now);
  EXPECT_EQ(test::the_only<to_host>(roles.start(ps_shard_role(shard1), second, now, copy(false))).host,
            "beta");
}

TEST_F(hosted_copies_test, a_drained_host_that_goes_is_no_loss_and_nobody_starts_it_again) {
  roles.set_drain("gamma", drain_stage::drained, now);
  auto out = roles.on_sighting("gamma", 8, {sight::silent, 800ms}, now);
  std::vector<std::string> told;
  for (const auto& event : all_of<job_event>(out)) told.push_back(event.event);
  EXPECT_THAT(told, testing::ElementsAre("host-left"));
  EXPECT_THAT(all_of<run_command>(pass(60s, {{"beta", 7}})), IsEmpty());
  out = roles.set_drain("gamma", drain_stage::none, now);
  EXPECT_EQ(test::the_only<run_command>(out).host, "gamma") << "it is used again";
}

TEST_F(hosted_copies_test, a_host_that_is_lost_while_it_is_drained_is_started_again_for_its_stores) {
  roles.set_drain("beta", drain_stage::draining, now);
  const auto out = pass(2s, {{"gamma", 8}});
  EXPECT_EQ(test::the_only<run_command>(out).host, "beta");
}

TEST_F(hosted_copies_test, a_keeper_that_waits_for_a_host_can_be_stopped) {
  roles.start(keeper_role({5}), first, now); // of a PS shard that has no place
  const auto told =
      test::the_only<tell_launch>(roles.stop(keeper_role({5}), first, protocol::stop_how::end, now));
  EXPECT_TRUE(std::holds_alternative<role_end>(told.what));
  EXPECT_EQ(roles.starts().find(keeper_role({5}), first), nullptr);
}

} // namespace
} // namespace dlrun::agent::test_hosts
