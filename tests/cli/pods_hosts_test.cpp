#include "cli/pods_hosts.hpp"

#include "actors/agent/drain_stage.hpp"
#include "actors/agent/host_roster.hpp"

#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using kubernetes::host_standing;

agent::host_view host(std::string name, std::string_view state, std::string address = "") {
  agent::host_view made{std::move(name), std::string{state}};
  made.address = std::move(address);
  return made;
}

agent::run_snapshot of(std::vector<agent::host_view> hosts) {
  agent::run_snapshot now;
  now.hosts = std::move(hosts);
  return now;
}

TEST(pods_hosts, are_those_of_the_job_by_slot) {
  const auto all =
      sights_of("x", of({host("control", "there", "10.0.0.1"), host("x-hosts-0", "there", "10.0.0.2"),
                         host("x-hosts-12", "away", "10.0.0.3"), host("x-hosts-1-1", "there"),
                         host("x-ps-0", "there", "10.0.0.4")}));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all.at({kubernetes::pod_group::ps, 0}).address, "10.0.0.4");
  EXPECT_EQ(all.at(0).standing, host_standing::there);
  EXPECT_EQ(all.at(0).address, "10.0.0.2");
  EXPECT_EQ(all.at(12).standing, host_standing::away);
}

TEST(pods_hosts, are_missed_when_they_are_away_and_in_no_other_state) {
  const auto standing = [](std::string_view state) {
    return sights_of("x", of({host("x-hosts-0", state)})).at(0).standing;
  };
  using agent::drain_stage;
  using agent::host_state;
  EXPECT_EQ(standing(to_string(host_state::away)), host_standing::away);
  for (const auto state : {host_state::starting, host_state::joining})
    EXPECT_EQ(standing(to_string(state)), host_standing::joining);
  for (const auto state : {host_state::there, host_state::leaving})
    EXPECT_EQ(standing(to_string(state)), host_standing::there);
  for (const auto stage : {drain_stage::draining, drain_stage::drained})
    EXPECT_EQ(standing(to_string(stage)), host_standing::there);
}

TEST(pods_hosts, are_needed_while_something_that_was_committed_is_nowhere_else) {
  auto one = host("x-hosts-0", "there"), other = host("x-hosts-1", "there");
  one.loses = "the only store of PS shard 0";
  const auto all = sights_of("x", of({one, other}));
  EXPECT_TRUE(all.at(0).is_only_place);
  EXPECT_FALSE(all.at(1).is_only_place);
}

TEST(pods_hosts, that_were_turned_away_are_known_by_where_they_came_from) {
  auto now = of({host("x-hosts-0", "away", "10.0.0.2")});
  now.turned_away = {{"x-hosts-0", "10.0.0.7"}, {"x-hosts-3", "10.0.0.8"}, {"other", "10.0.0.9"}};
  const auto all = sights_of("x", now);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.at(0).turned_away, "10.0.0.7");
  EXPECT_EQ(all.at(3).standing, host_standing::away);
  EXPECT_EQ(all.at(3).turned_away, "10.0.0.8");
}

TEST(pods_hosts, that_cannot_be_had_end_a_run_that_was_stopped_for_that_and_no_other) {
  const kubernetes::pods_end why{2, "the Role lacks a verb"};
  const auto ended = ended_for(why, {.code = 130, .reason = "x", .error = error_code::interrupted});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.reason, "the Role lacks a verb");
  EXPECT_FALSE(ended.error);
  EXPECT_TRUE(ended.is_for_good);
  for (const int code : {0, 1, 3}) EXPECT_EQ(ended_for(why, {.code = code, .reason = "own"}).code, code);
  EXPECT_EQ(ended_for(std::nullopt, {.code = 130, .reason = "x"}).code, 130);
}

} // namespace
} // namespace dlrun::cli
