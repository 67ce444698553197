// What an earlier root left running on beta and gamma.
#include "actors/agent/found_starts.hpp"

#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

class found_starts_test : public testing::Test {
protected:
  found_starts_test() {
    for (const auto* host : {"alpha", "beta", "gamma"}) places.add_host(host, {.cpus = 2});
  }
  static protocol::host_joined there(const std::string& host, std::uint64_t boot,
                                     std::vector<protocol::running_start> running) {
    return {.host = host, .boot = boot, .running = std::move(running)};
  }
  std::vector<protocol::running_start> take_over() { return found.take_over(starts, places, now, out); }

  const protocol::time_point now{1h};
  const protocol::running_start worker{worker_role({1}), first, 100};
  const protocol::running_start shard{ps_shard_role({1}), first, 101};
  const protocol::running_start keeper{protocol::keeper_role({0}), first, 102};
  hosted_starts starts{500ms};
  placement places{"alpha", 1};
  hosted_actions out;
  found_starts found;
};

TEST_F(found_starts_test, what_runs_is_in_hand_before_it_is_chosen) {
  found.note(there("beta", 7, {worker}), starts);
  const auto* held = starts.find(worker.role, first);
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(held->host, "beta");
  EXPECT_EQ(held->boot, 7U);
  EXPECT_TRUE(held->is_answered) << "it needs no order";
}

TEST_F(found_starts_test, the_newest_start_of_a_role_keeps_its_place_and_the_others_are_killed) {
  const protocol::running_start newer{worker.role, second, 103};
  found.note(there("gamma", 8, {newer}), starts);
  found.note(there("beta", 7, {worker, shard}), starts);
  EXPECT_THAT(take_over(), testing::UnorderedElementsAre(newer, shard));
  EXPECT_EQ(places.host_of(worker.role), "gamma");
  EXPECT_EQ(places.host_of(shard.role), "beta");
  const auto stop = test::the_only<to_host>(out);
  EXPECT_EQ(stop.host, "beta");
  EXPECT_EQ(std::get<protocol::stop_order>(stop.message).how, protocol::stop_how::kill);
}

TEST_F(found_starts_test, what_is_over_by_then_is_not_taken_over_and_an_older_start_is) {
  found.note(there("beta", 7, {worker}), starts);
  found.note(there("gamma", 8, {{worker.role, second, 103}}), starts);
  starts.erase({worker.role, second.incarnation});
  EXPECT_THAT(take_over(), testing::ElementsAre(worker));
}

TEST_F(found_starts_test, a_keeper_has_still_to_say_what_it_holds) {
  found.note(there("beta", 7, {keeper}), starts);
  EXPECT_EQ(starts.unheard_copy({0}), nullptr);
  take_over();
  EXPECT_NE(starts.unheard_copy({0}), nullptr);
}

TEST_F(found_starts_test, once_it_has_chosen_nothing_more_comes_in_hand) {
  take_over();
  found.note(there("beta", 7, {worker}), starts);
  EXPECT_TRUE(starts.is_empty());
}

TEST_F(found_starts_test, a_ps_shard_that_ends_late_leaves_its_place_unless_it_has_one) {
  const auto late = [](const std::string& host) {
    return protocol::start_report{
        .host = host, .boot = 7, .role = ps_shard_role({1}), .self = first, .why = ""};
  };
  end_late(late("beta"), places, out);
  EXPECT_EQ(places.host_of(shard.role), "beta");
  end_late(late("gamma"), places, out);
  EXPECT_EQ(places.host_of(shard.role), "beta");
  EXPECT_EQ(sent<protocol::stop_order>(out).size(), 2U);
}

TEST_F(found_starts_test, of_a_complete_job_all_end_and_the_stores_of_ps_shards_and_keepers_are_whole) {
  const auto joined = there("beta", 7, {worker, shard, keeper});
  found.note(joined, starts);
  const last_stores last{.ps_shards = 2, .version = {50}, .timeline = {3}};
  end_found(joined, last, starts, places);
  for (const auto& one : joined.running)
    EXPECT_EQ(starts.find(one.role, first)->stop, protocol::stop_how::kill);
  EXPECT_TRUE(holds(places.stores().find("beta", {1}), last));
  EXPECT_TRUE(holds(places.stores().find("beta", {0}), last));
}

} // namespace
} // namespace dlrun::agent::test_hosts
