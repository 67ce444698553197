#include "actors/agent/hosts_wait.hpp"

#include "base/job_hosts.hpp"
#include "tests/actors/agent/hosts_by_hand.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr protocol::time_point began{1h};

TEST(hosts_wait, knows_from_where_hosts_wanted_to_join_just_now_in_vain) {
  hosts_wait waiting;
  waiting.note_turned_away("beta", "10.0.0.2", began);
  waiting.note_turned_away("gamma", "10.0.0.3", began + 10s);
  waiting.note_turned_away("beta", "10.0.0.7", began + 10s);
  EXPECT_THAT(waiting.turned_away(began + 20s),
              ElementsAre(Pair("beta", "10.0.0.7"), Pair("gamma", "10.0.0.3")));
  EXPECT_THAT(waiting.turned_away(began + 26s), IsEmpty());
}

TEST(hosts_wait, keeps_no_more_of_them_than_a_job_may_have_hosts) {
  hosts_wait waiting;
  for (std::uint32_t i = 0; i < base::job_hosts_max + 10; ++i)
    waiting.note_turned_away(fmt::format("h{}", i), "10.0.0.2", began);
  EXPECT_THAT(waiting.turned_away(began), SizeIs(base::job_hosts_max));
  waiting.note_turned_away("late", "10.0.0.3", began + 16s);
  EXPECT_THAT(waiting.turned_away(began + 16s), ElementsAre(Pair("late", "10.0.0.3")));
}

TEST(hosts_wait, is_told_of_those_that_a_job_does_not_let_in) {
  auto now = began;
  routed_launcher launcher{{.hosts = {.root = "alpha", .root_cpus = 1, .hosts = {{"beta", 8}}},
                            .here = nullptr,
                            .starter = std::make_shared<order_of_hosts>(),
                            .issue = [](const auto&, const auto&) { return protocol::role_credentials{}; },
                            .beats = std::make_shared<beats_by_hand>("10.0.0.1:5000"),
                            .now = [&now] { return now; }}};
  EXPECT_FALSE(launcher.admit({"gamma", "10.0.0.3", 1}).has_value()) << "no host may join";
  EXPECT_THAT(launcher.waiting().turned_away(now), ElementsAre(Pair("gamma", "10.0.0.3")));
}

/// A job that trains goes on with fewer hosts, and its root has other things to look at.
TEST(hosts_wait, waits_for_nobody_once_the_job_has_begun) {
  hosted_roles_config config{.root = "alpha", .root_cpus = 1, .hosts = {{"beta", 8}}};
  config.joining = {.hosts_min = 3, .way_to_join = "hosts join at 10.0.0.1:7700"};
  const hosted_roles roles{config};
  hosts_wait waiting;
  waiting.show(roles);
  EXPECT_FALSE(waiting.wait_until_there(0s).has_value());
  waiting.note_begun();
  waiting.show(roles);
  EXPECT_TRUE(waiting.wait_until_there(0s).has_value());
  EXPECT_EQ(waiting.awaited(), "");
}

} // namespace
} // namespace dlrun::agent
