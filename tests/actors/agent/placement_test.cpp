#include "actors/agent/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using protocol::ps_shard_role;
using protocol::role_kind;
using protocol::role_name;
using protocol::worker_role;
using testing::HasSubstr;

constexpr role_name the_coordinator{role_kind::coordinator, 0};

placement three_hosts(std::uint32_t cpus_of_root = 2) {
  placement made{"alpha", 1};
  made.add_host("alpha", {.cpus = cpus_of_root});
  made.add_host("beta", {.cpus = 2});
  made.add_host("gamma", {.cpus = 2});
  return made;
}

TEST(placement, keeps_the_coordinator_with_the_root) {
  auto hosts = three_hosts();
  EXPECT_EQ(hosts.put(the_coordinator).host, "alpha");
  EXPECT_THAT(hosts.find(the_coordinator)->reason, HasSubstr("journal"));
}

/// As a run places them: the coordinator first, then the shards.
TEST(placement, a_coordinator_that_may_move_and_ps_shards_keep_apart) {
  placement hosts{"alpha", 1, true};
  for (const auto* name : {"alpha", "beta", "delta", "gamma"}) hosts.add_host(name, {.cpus = 2});
  EXPECT_EQ(hosts.put(the_coordinator).host, "beta") << "not with the root, whose loss ends the job";
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "alpha");
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "delta");
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.put(the_coordinator).host, "gamma") << "no PS shard is there";
  EXPECT_THAT(hosts.find(the_coordinator)->reason, HasSubstr("no PS shard is there; beta is lost"));
  hosts.add_host("beta", {.cpus = 2});
  EXPECT_EQ(hosts.put(the_coordinator).host, "beta") << "it ended on gamma, maybe by what is wrong there";
  EXPECT_THAT(hosts.find(the_coordinator)->reason, HasSubstr("; it ended on gamma"));
  hosts.remove_host("beta");
  hosts.remove_host("gamma");
  hosts.remove_host("delta");
  EXPECT_EQ(hosts.put(the_coordinator).host, "alpha") << "there is no other";
}

TEST(placement, puts_ps_shards_apart_the_first_with_the_root) {
  auto hosts = three_hosts();
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "alpha");
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "beta");
  EXPECT_EQ(hosts.put(ps_shard_role({2})).host, "gamma");
  EXPECT_EQ(hosts.put(ps_shard_role({3})).host, "alpha");
  EXPECT_THAT(hosts.find(ps_shard_role({3}))->reason, HasSubstr("1 PS shards are there, nowhere fewer"));
}

TEST(placement, puts_a_ps_shard_where_its_store_is) {
  auto hosts = three_hosts();
  hosts.set_stores("gamma", {{{0}, {1}, {0}, {30}}});
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "gamma");
  EXPECT_THAT(hosts.find(ps_shard_role({0}))->reason, HasSubstr("its store is there"));
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "alpha");
}

TEST(placement, takes_the_store_of_the_highest_timeline_then_the_furthest_then_the_last_opened) {
  auto hosts = three_hosts();
  hosts.set_stores("alpha", {{{0}, {9}, {0}, {500}}, {{1}, {9}, {1}, {40}}, {{2}, {3}, {1}, {40}}});
  hosts.set_stores("beta", {{{0}, {2}, {1}, {10}}, {{1}, {2}, {1}, {41}}, {{2}, {4}, {1}, {40}}});
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(hosts.put(ps_shard_role({i})).host, "beta");
}

TEST(placement, of_equal_stores_takes_that_of_another_host_than_the_roots) {
  for (const auto* root : {"alpha", "beta"}) {
    placement hosts{root, 1};
    hosts.add_host("alpha", {.cpus = 2});
    hosts.add_host("beta", {.cpus = 2});
    for (const auto* host : {"alpha", "beta"}) hosts.set_stores(host, {{{0}, {2}, {1}, {10}}});
    EXPECT_EQ(*hosts.find_store({0}), root == std::string{"alpha"} ? "beta" : "alpha");
  }
}

TEST(placement, counts_no_store_of_a_host_that_is_away_or_that_lost_it) {
  auto hosts = three_hosts();
  hosts.set_stores("beta", {{{0}, {2}, {1}, {10}}});
  hosts.set_stores("gamma", {{{0}, {1}, {0}, {10}}});
  hosts.remove_host("beta");
  EXPECT_EQ(*hosts.find_store({0}), "gamma");
  EXPECT_EQ(*hosts.find_store({0}, false), "beta") << "which may come back";
  hosts.add_host("beta", {.cpus = 2});
  EXPECT_EQ(*hosts.find_store({0}), "beta");
  hosts.set_stores("beta", {});
  EXPECT_EQ(*hosts.find_store({0}), "gamma");
  EXPECT_EQ(hosts.find_store({1}), nullptr);
}

TEST(placement, a_ps_shard_whose_host_has_lost_its_store_goes_where_another_one_is) {
  auto hosts = three_hosts();
  hosts.set_stores("beta", {{{0}, {2}, {1}, {10}}});
  hosts.set_stores("gamma", {{{0}, {1}, {0}, {10}}});
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "beta");
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "alpha");
  hosts.remove_host("beta");
  hosts.add_host("beta", {.cpus = 2});
  hosts.set_stores("beta", {});
  hosts.set_stores("alpha", {});
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "gamma");
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "alpha") << "no other host has one either";
}

TEST(placement, does_not_depend_on_which_host_was_there_first) {
  placement late{"alpha", 1};
  late.add_host("gamma", {.cpus = 2});
  late.add_host("alpha", {.cpus = 2});
  late.add_host("beta", {.cpus = 2});
  auto early = three_hosts();
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(late.put(ps_shard_role({i})).host, early.put(ps_shard_role({i})).host);
    EXPECT_EQ(late.put(worker_role({i})).host, early.put(worker_role({i})).host);
  }
}

TEST(placement, spreads_workers_by_cores_that_are_free) {
  placement hosts{"alpha", 1};
  hosts.add_host("alpha", {.cpus = 2});
  hosts.add_host("beta", {.cpus = 4});
  hosts.put(ps_shard_role({0})); // alpha
  EXPECT_EQ(hosts.put(worker_role({0})).host, "beta");
  EXPECT_EQ(hosts.put(worker_role({1})).host, "beta");
  EXPECT_EQ(hosts.put(worker_role({2})).host, "beta");
  EXPECT_EQ(hosts.put(worker_role({3})).host, "alpha");
  EXPECT_EQ(hosts.put(worker_role({4})).host, "beta");
  EXPECT_THAT(hosts.find(worker_role({4}))->reason, HasSubstr("4 threads on 4 cores"));
}

TEST(placement, counts_all_threads_of_a_worker) {
  placement hosts{"alpha", 3};
  hosts.add_host("alpha", {.cpus = 2});
  hosts.add_host("beta", {.cpus = 1});
  EXPECT_EQ(hosts.put(worker_role({0})).host, "alpha");
  EXPECT_EQ(hosts.put(worker_role({1})).host, "alpha"); // 6 threads on 2 cores, and not 3 on 1
}

TEST(placement, starts_a_role_again_where_it_was) {
  auto hosts = three_hosts();
  hosts.put(ps_shard_role({0}));
  hosts.put(ps_shard_role({1}));
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.find(ps_shard_role({1}))->host, "beta"); // until it is placed anew
  hosts.add_host("beta", {.cpus = 2});
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "beta");
}

TEST(placement, moves_the_roles_of_a_lost_host_and_says_why) {
  auto hosts = three_hosts();
  for (std::uint32_t i = 0; i < 3; ++i) hosts.put(worker_role({i}));
  const auto lost = hosts.find(worker_role({1}))->host;
  ASSERT_EQ(lost, "beta");
  hosts.remove_host("beta");
  EXPECT_NE(hosts.put(worker_role({1})).host, "beta");
  EXPECT_THAT(hosts.find(worker_role({1}))->reason, HasSubstr("beta is lost"));
}

TEST(placement, leaves_what_was_moved_where_it_is_when_the_host_is_back) {
  auto hosts = three_hosts();
  for (std::uint32_t i = 0; i < 2; ++i) hosts.put(ps_shard_role({i}));
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "gamma");
  hosts.add_host("beta", {.cpus = 2});
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "gamma");
}

TEST(placement, spares_a_root_without_cores) {
  auto hosts = three_hosts(0);
  EXPECT_EQ(hosts.put(the_coordinator).host, "alpha");
  for (const std::uint32_t shard : {0U, 1U, 2U}) EXPECT_NE(hosts.put(ps_shard_role({shard})).host, "alpha");
  for (const std::uint32_t worker : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U})
    EXPECT_NE(hosts.put(worker_role({worker})).host, "alpha");
  for (const std::uint32_t shard : {0U, 1U, 2U})
    EXPECT_NE(hosts.put(protocol::keeper_role({shard}, 0)).host, "alpha");
}

/// They stay but for the worker, which is moved when it starts again.
TEST(placement, a_spared_root_takes_what_has_no_other_host) {
  auto hosts = three_hosts(0);
  hosts.put(ps_shard_role({0}));
  hosts.remove_host("beta");
  hosts.put(worker_role({0}));
  EXPECT_EQ(hosts.put(protocol::keeper_role({0}, 0)).host,
            hosts.host_of(ps_shard_role({0})) == "beta" ? "gamma" : "alpha");
  hosts.remove_host("gamma");
  for (const auto& role : {ps_shard_role({0}), worker_role({0})}) {
    EXPECT_EQ(hosts.put(role).host, "alpha");
    EXPECT_THAT(hosts.find(role)->reason, HasSubstr("no other host is open, and this one has no cores"));
  }
  EXPECT_EQ(hosts.put(worker_role({0})).host, "alpha") << "there is still no other";
  hosts.add_host("beta", {.cpus = 2});
  EXPECT_EQ(hosts.put(worker_role({0})).host, "beta");
  EXPECT_THAT(hosts.find(worker_role({0}))->reason, HasSubstr("; alpha has no cores for the job"));
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "alpha") << "its store is there";
}

/// alpha, the root's, has none.
placement hosts_with_gpus(const std::map<std::string, std::uint32_t>& gpus) {
  placement made{"alpha", 1, false, false, true};
  made.add_host("alpha", {.cpus = 16});
  for (const auto& [name, count] : gpus) made.add_host(name, {.cpus = 2, .gpus = count});
  return made;
}

TEST(placement, workers_that_need_gpus_go_where_the_fewest_share_one) {
  auto hosts = hosts_with_gpus({{"beta", 1}, {"gamma", 3}});
  hosts.put(ps_shard_role({0}));
  hosts.put(ps_shard_role({1})); // beta
  std::map<std::string, int> found;
  for (std::uint32_t i = 0; i < 8; ++i) ++found[hosts.put(worker_role({i})).host];
  EXPECT_EQ(found, (std::map<std::string, int>{{"beta", 2}, {"gamma", 6}}));
  EXPECT_THAT(hosts.find(worker_role({7}))->reason, HasSubstr("GPUs with it, nowhere fewer a GPU"));
}

TEST(placement, spares_a_root_whose_gpus_are_not_for_the_job) {
  placement hosts{"alpha", 1, false, false, true};
  hosts.add_host("alpha", {.cpus = 0, .gpus = 8});
  hosts.add_host("beta", {.cpus = 2, .gpus = 1});
  for (const std::uint32_t worker : {0U, 1U, 2U}) EXPECT_EQ(hosts.put(worker_role({worker})).host, "beta");
  hosts.remove_host("beta");
  EXPECT_EQ(hosts.put(worker_role({0})).host, "alpha") << "it has some, and no other host is there";
}

/// With one GPU each a PS shard on one of two hosts is no reason to share the other's.
TEST(placement, ps_shards_leave_no_gpu_idle) {
  for (const auto* busy : {"beta", "gamma"}) {
    auto hosts = hosts_with_gpus({{"beta", 1}, {"gamma", 1}});
    for (std::uint32_t i = 0; i < 3; ++i) hosts.keep(ps_shard_role({i}), busy, "its store is there");
    EXPECT_NE(hosts.put(worker_role({0})).host, busy) << "of equals the one whose cores have less to do";
    EXPECT_EQ(hosts.put(worker_role({1})).host, busy);
  }
}

TEST(placement, a_worker_that_needs_a_gpu_waits_where_no_open_host_has_one) {
  auto hosts = hosts_with_gpus({{"beta", 1}, {"gamma", 1}});
  hosts.put(ps_shard_role({0}));
  EXPECT_EQ(hosts.put(worker_role({0})).host, "beta");
  hosts.remove_host("beta");
  EXPECT_TRUE(hosts.can_put(worker_role({0})));
  hosts.set_closed("gamma", true);
  EXPECT_FALSE(hosts.can_put(worker_role({0}))) << "gamma takes no roles";
  EXPECT_TRUE(hosts.can_put(ps_shard_role({0})));
  hosts.set_closed("gamma", false);
  hosts.remove_host("gamma");
  EXPECT_FALSE(hosts.can_put(worker_role({0})));
  hosts.add_host("delta", {.cpus = 2});
  EXPECT_FALSE(hosts.can_put(worker_role({0}))) << "delta has none";
  hosts.add_host("beta", {.cpus = 2, .gpus = 1});
  EXPECT_TRUE(hosts.can_put(worker_role({0})));
  EXPECT_EQ(hosts.put(worker_role({0})).host, "beta");
}

TEST(placement, leaves_preemptible_hosts_to_workers) {
  placement hosts{"alpha", 1, true};
  hosts.add_host("alpha", {.cpus = 2});
  for (const auto* name : {"beta", "gamma"}) hosts.add_host(name, {.cpus = 2, .preemptible = true});
  EXPECT_EQ(hosts.standing_of("beta"), standing::preemptible);
  EXPECT_EQ(hosts.standing_of("alpha"), standing::stays);
  EXPECT_EQ(hosts.put(the_coordinator).host, "alpha") << "though the job ends with the root";
  for (std::uint32_t shard = 0; shard < 3; ++shard)
    EXPECT_EQ(hosts.put(ps_shard_role({shard})).host, "alpha");
  EXPECT_EQ(hosts.put(worker_role({0})).host, "beta");
  EXPECT_EQ(hosts.put(protocol::keeper_role({0})).host, "beta")
      << "its PS shard is on the only host that stays";
  hosts.add_host("delta", {.cpus = 2});
  EXPECT_EQ(hosts.put(protocol::keeper_role({1})).host, "delta");
  hosts.set_stores("gamma", {{{2}, {1}, {0}, {30}}});
  EXPECT_EQ(hosts.put(protocol::keeper_role({2})).host, "delta") << "though gamma has a store";
  EXPECT_EQ(hosts.put(worker_role({1})).host, "delta") << "of workers each host has its share";
}

TEST(placement, takes_a_preemptible_host_where_no_other_is_open) {
  placement hosts{"alpha", 1};
  hosts.add_host("alpha", {.cpus = 0});
  hosts.add_host("beta", {.cpus = 2, .preemptible = true});
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "beta") << "the root has no cores for the job";
  EXPECT_THAT(hosts.find(ps_shard_role({0}))->reason, HasSubstr("no host that stays is open"));
}

placement hosts_by_kind(std::uint32_t cpus_of_root) {
  placement made{"alpha", 1, true};
  made.add_host("alpha", {.cpus = cpus_of_root});
  for (const auto* name : {"beta", "gamma"})
    made.add_host(name, {.cpus = 2, .takes = protocol::host_takes::ps_shards});
  for (const auto* name : {"delta", "epsilon"})
    made.add_host(name, {.cpus = 2, .takes = protocol::host_takes::workers});
  return made;
}

TEST(placement, keeps_workers_and_ps_shards_apart_where_hosts_say_so) {
  auto hosts = hosts_by_kind(0);
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "beta");
  EXPECT_EQ(hosts.put(ps_shard_role({1})).host, "gamma");
  EXPECT_EQ(hosts.put(protocol::keeper_role({0})).host, "gamma");
  EXPECT_EQ(hosts.put(protocol::keeper_role({1})).host, "beta");
  for (const std::uint32_t worker : {0U, 1U, 2U})
    EXPECT_THAT(hosts.put(worker_role({worker})).host, testing::AnyOf("delta", "epsilon"));
  EXPECT_EQ(hosts.put(the_coordinator).host, "epsilon") << "no PS shard is there, and fewer workers";
}

TEST(placement, ps_shards_go_to_hosts_for_workers_where_no_other_is_open) {
  auto hosts = hosts_by_kind(0);
  hosts.add_host("delta", {.cpus = 2, .preemptible = true, .takes = protocol::host_takes::workers});
  hosts.put(ps_shard_role({0})); // beta
  hosts.remove_host("beta");
  hosts.remove_host("gamma");
  EXPECT_EQ(hosts.standing_of("epsilon"), standing::for_workers);
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "epsilon") << "delta may go, and the root has no cores";
  EXPECT_THAT(hosts.find(ps_shard_role({0}))->reason,
              HasSubstr("no host that takes PS shards is open; beta is lost"));
  EXPECT_EQ(hosts.put(protocol::keeper_role({0})).host, "delta");
}

TEST(placement, workers_wait_where_only_hosts_for_ps_shards_are_open) {
  auto hosts = hosts_by_kind(2);
  hosts.add_host("alpha", {.cpus = 2, .takes = protocol::host_takes::ps_shards});
  EXPECT_EQ(hosts.put(worker_role({0})).host, "delta");
  hosts.remove_host("delta");
  hosts.remove_host("epsilon");
  EXPECT_FALSE(hosts.can_put(worker_role({0})));
  hosts.add_host("delta",
                 {.cpus = 2, .takes = protocol::host_takes::ps_shards}); // another machine of its name
  hosts.add_host("zeta", {.cpus = 2});
  EXPECT_EQ(hosts.put(worker_role({0})).host, "zeta");
  EXPECT_THAT(hosts.find(worker_role({0}))->reason, HasSubstr("; delta takes no workers"));
}

TEST(placement, keeps_copies_on_another_machine_while_there_is_one) {
  placement hosts{"alpha", 1};
  hosts.add_host("alpha", {.cpus = 2, .machine = "m"});
  hosts.add_host("beta", {.cpus = 2, .machine = "m"});
  const auto keeper = protocol::keeper_role({0});
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "alpha");
  EXPECT_EQ(hosts.put(keeper).host, "beta") << "there is no other";
  EXPECT_TRUE(hosts.shares_machine("beta", keeper));
  EXPECT_FALSE(hosts.has_better_host_for_copy(keeper));
  hosts.add_host("gamma", {.cpus = 2, .preemptible = true, .machine = "n"});
  EXPECT_TRUE(hosts.has_better_host_for_copy(keeper)) << "though that may go at short notice";
  EXPECT_EQ(hosts.put(keeper).host, "beta") << "it only starts again";
  EXPECT_EQ(hosts.put(keeper, false, true).host, "gamma") << "it moves";
  EXPECT_THAT(hosts.find(keeper)->reason, HasSubstr("; another store of it is on the machine of beta"));
  hosts.add_host("delta", {.cpus = 2}); // a machine of its own
  EXPECT_EQ(hosts.put(keeper, false, true).host, "delta");
}

TEST(placement, keeps_copies_off_a_spared_root_whatever_shares_a_machine) {
  placement hosts{"alpha", 1};
  hosts.add_host("alpha", {.cpus = 0, .machine = "m"});
  for (const auto* name : {"beta", "gamma"}) hosts.add_host(name, {.cpus = 2, .machine = "n"});
  const auto keeper = protocol::keeper_role({0});
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "beta");
  EXPECT_EQ(hosts.put(keeper).host, "gamma");
  EXPECT_TRUE(hosts.shares_machine("gamma", keeper));
  EXPECT_FALSE(hosts.has_better_host_for_copy(keeper));
}

/// Else it would come and go for ever.
TEST(placement, brings_no_copy_back_where_it_was_given_up_until_that_host_joins_again) {
  placement hosts{"alpha", 1};
  hosts.add_host("alpha", {.cpus = 2});
  hosts.add_host("beta", {.cpus = 2});
  hosts.add_host("gamma", {.cpus = 2, .takes = protocol::host_takes::workers});
  const auto keeper = protocol::keeper_role({0});
  EXPECT_EQ(hosts.put(ps_shard_role({0})).host, "alpha");
  EXPECT_EQ(hosts.put(keeper).host, "beta");
  EXPECT_EQ(hosts.put(keeper, true).host, "gamma") << "it was given up";
  EXPECT_FALSE(hosts.has_better_host_for_copy(keeper));
  hosts.add_host("beta", {.cpus = 2});
  EXPECT_TRUE(hosts.has_better_host_for_copy(keeper));
}

TEST(placement, of_equal_copies_takes_that_of_a_host_that_stays) {
  placement hosts{"alpha", 1};
  for (const auto* name : {"alpha", "beta", "delta"})
    hosts.add_host(name, {.cpus = 2, .preemptible = name == std::string{"beta"}});
  const auto keeper = protocol::keeper_role({0}), other = role_name{keeper.kind, keeper.index + 1000};
  hosts.keep(keeper, "beta", "");
  hosts.keep(other, "delta", "");
  EXPECT_EQ(*hosts.best_copy({0}, {keeper, other}), other);
}

TEST(placement, goes_on_with_the_root_alone) {
  auto hosts = three_hosts();
  for (std::uint32_t i = 0; i < 3; ++i) hosts.put(ps_shard_role({i})), hosts.put(worker_role({i}));
  hosts.remove_host("beta");
  hosts.remove_host("gamma");
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(hosts.put(ps_shard_role({i})).host, "alpha");
    EXPECT_EQ(hosts.put(worker_role({i})).host, "alpha");
  }
}

} // namespace
} // namespace dlrun::agent
