// Beta and gamma leave the job.
#include "actors/agent/host_departures.hpp"

#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

class host_departures_test : public testing::Test {
protected:
  host_departures_test() {
    roster_events events;
    roster.start(now);
    roster.on_joined("beta", 7, now, events);
    roster.on_joined("gamma", 8, now, events);
  }
  void put(const role_name& role, const std::string& host) {
    starts.put(role, {.self = first, .host = host, .boot = 7, .is_answered = true});
  }
  std::vector<std::string> may_go() const { return departures.may_go(roster, starts); }
  std::size_t repeated(protocol::duration after) {
    hosted_actions out;
    departures.repeat_dismissals(roster, now += after, out);
    return sent<protocol::dismissal>(out).size();
  }

  protocol::time_point now{1h};
  host_roster roster{{}, {"beta", "gamma"}};
  hosted_starts starts{500ms};
  host_departures departures{500ms, false};
};

TEST_F(host_departures_test, a_host_that_is_to_leave_goes_without_workers) {
  put(worker_role({0}), "beta");
  put(ps_shard_role({0}), "beta");
  EXPECT_THAT(may_go(), IsEmpty());
  roster.on_leaving("beta");
  EXPECT_THAT(may_go(), IsEmpty());
  starts.erase({worker_role({0}), first.incarnation});
  EXPECT_THAT(may_go(), testing::ElementsAre("beta"));
}

TEST_F(host_departures_test, none_goes_while_hosts_are_held) {
  roster.on_leaving("beta");
  departures.hold();
  EXPECT_THAT(may_go(), IsEmpty());
}

TEST_F(host_departures_test, only_the_workers_of_that_host_are_asked_to_leave) {
  put(worker_role({0}), "beta");
  put(ps_shard_role({0}), "beta");
  put(worker_role({1}), "gamma");
  hosted_actions out;
  send_workers_away("beta", starts, now, out);
  const auto order = std::get<protocol::stop_order>(test::the_only<to_host>(out).message);
  EXPECT_EQ(order.role, worker_role({0}));
  EXPECT_EQ(order.how, protocol::stop_how::leave);
}

TEST_F(host_departures_test, who_is_dismissed_hears_the_reason_again_until_it_has_gone) {
  EXPECT_EQ(repeated(1s), 0U) << "the job is not over";
  hosted_actions out;
  departures.dismiss("all is trained", roster, out);
  const auto told = sent<protocol::dismissal>(out);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told.at(0).boot, 7U);
  EXPECT_EQ(told.at(0).reason, "all is trained");
  EXPECT_EQ(repeated(100ms), 2U);
  EXPECT_EQ(repeated(100ms), 0U);
  EXPECT_EQ(repeated(400ms), 2U);
  roster.on_leaving("gamma");
  roster.let_go("gamma", now);
  EXPECT_EQ(repeated(500ms), 1U);
}

} // namespace
} // namespace dlrun::agent::test_hosts
