// Hosts on which roles end before they are there.
#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

class host_trials_test : public hosted_roles_test {
protected:
  host_trials_test() { run_worker_on_beta(); }

  /// Starts the worker again. @returns the host that is ordered to, "" for the own one.
  std::string start_again() {
    const auto out = roles.start(worker_role({1}), self = {{self.incarnation.value + 1}, 11}, now);
    return all_of<to_host>(out).empty() ? "" : test::the_only<to_host>(out).host;
  }
  hosted_actions end(const role_name& role, const fence& which, bool exited = true) {
    auto how = report("beta", 7, role, which, start_state::ended);
    how.exited = exited;
    return roles.on_report(how, now);
  }
  void give_sign() { roles.on_heartbeat({.role = worker_role({1}), .self = self}); }
  static const role_end& end_in(const hosted_actions& out) {
    for (const auto& one : out)
      if (const auto* told = std::get_if<tell_launch>(&one)) return std::get<role_end>(told->what);
    ADD_FAILURE() << "no end is told";
    static const role_end none{};
    return none;
  }

  fence self = first;
};

TEST_F(host_trials_test,
       after_two_starts_in_a_row_that_were_never_heard_of_roles_start_elsewhere_for_a_minute) {
  EXPECT_THAT(all_of<job_event>(end(worker_role({1}), self)), IsEmpty());
  EXPECT_EQ(start_again(), "beta");
  const auto event = test::the_only<job_event>(end(worker_role({1}), self));
  EXPECT_EQ(event.event, "host-avoided");
  EXPECT_EQ(event.place.host, "beta");
  EXPECT_THAT(event.text, HasSubstr("the last: exited"));
  EXPECT_EQ(start_again(), "gamma");
  pass(59s, {{"beta", 7}, {"gamma", 8}});
  EXPECT_FALSE(roles.places().is_open("beta"));
  pass(1s, {{"beta", 7}, {"gamma", 8}});
  EXPECT_TRUE(roles.places().is_open("beta"));
}

TEST_F(host_trials_test, a_sign_of_life_in_between_makes_the_host_a_good_one) {
  for (int starts = 0; starts < 3; ++starts) {
    end(worker_role({1}), self);
    EXPECT_EQ(start_again(), "beta");
    give_sign();
    EXPECT_THAT(all_of<job_event>(end(worker_role({1}), self)), IsEmpty());
    EXPECT_EQ(start_again(), "beta");
  }
}

TEST_F(host_trials_test, who_is_killed_says_nothing_of_the_host) {
  for (int kills = 0; kills < 4; ++kills) {
    EXPECT_THAT(all_of<job_event>(end(worker_role({1}), self, false)), IsEmpty());
    EXPECT_EQ(start_again(), "beta");
  }
}

TEST_F(host_trials_test, it_is_one_failure_however_many_starts_end_on_the_host_then) {
  std::vector<role_name> others;
  for (std::uint32_t worker = 2; worker < 8; ++worker)
    if (!all_of<to_host>(roles.start(worker_role({worker}), first, now)).empty() &&
        roles.places().host_of(worker_role({worker})) == "beta")
      others.push_back(worker_role({worker}));
  ASSERT_GE(others.size(), 1U);
  EXPECT_FALSE(end_in(end(worker_role({1}), self)).is_one_of_several);
  for (const auto& role : others) EXPECT_TRUE(end_in(end(role, first)).is_one_of_several);
}

TEST_F(host_trials_test, the_next_time_is_twice_as_long_until_a_start_is_heard_of) {
  host_trials trials;
  for (const auto time : {60s, 120s, 240s}) {
    trials.on_failed("beta", now);
    EXPECT_EQ(trials.on_failed("beta", now), protocol::duration{time});
    EXPECT_EQ(trials.on_failed("beta", now), std::nullopt) << "it is avoided already";
    now += time;
    EXPECT_THAT(trials.over(now), testing::ElementsAre("beta"));
  }
  trials.on_good("beta");
  trials.on_failed("beta", now);
  EXPECT_EQ(trials.on_failed("beta", now), protocol::duration{60s});
}

/// A PS shard whose only store is there has nowhere else to go.
TEST_F(host_trials_test, a_store_is_still_opened_where_it_is) {
  placement places{"alpha", 1};
  places.add_host("alpha", {.cpus = 2});
  places.add_host("beta", {.cpus = 2});
  places.set_stores("beta", {{.shard = {0}, .opener = {1}, .timeline = {0}, .end = {5}}});
  places.set_closed("beta", true, closure::avoided);
  EXPECT_EQ(places.put(ps_shard_role({0})).host, "beta");
  EXPECT_EQ(places.put(worker_role({0})).host, "alpha");
}

} // namespace
} // namespace dlrun::agent::test_hosts
