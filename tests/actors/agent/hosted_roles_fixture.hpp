/// The agent's view of other hosts: beta and gamma, and alpha, which is its own.
#pragma once

#include "actors/agent/hosted_roles.hpp"
#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent::test_hosts {

using namespace std::chrono_literals;
using protocol::fence;
using protocol::job_event;
using protocol::ps_shard_role;
using protocol::role_kind;
using protocol::role_name;
using protocol::start_state;
using protocol::worker_role;
using testing::HasSubstr;
using testing::IsEmpty;

inline constexpr fence first{{1}, 11};
inline constexpr fence second{{2}, 22};

template <class Action>
std::vector<Action> all_of(const hosted_actions& actions) {
  std::vector<Action> found;
  for (const auto& one : actions)
    if (const auto* which = std::get_if<Action>(&one)) found.push_back(*which);
  return found;
}
/// The messages of one kind, to any host.
template <class Message>
std::vector<Message> sent(const hosted_actions& actions) {
  std::vector<Message> found;
  for (const auto& one : all_of<to_host>(actions))
    if (const auto* which = std::get_if<Message>(&one.message)) found.push_back(*which);
  return found;
}

class hosted_roles_test : public testing::Test {
protected:
  hosted_roles_test() {
    roles.begin(now);
    roles.coordinator_is({1}, {});
    join("beta", 7);
    join("gamma", 8);
    for (const auto& [host, boot] : first_boots) roles.on_sighting(host, boot, {sight::there, 0ms}, now);
  }
  hosted_actions join(const std::string& host, std::uint64_t boot) {
    return roles.on_joined({host, boot, 100, 2}, now, refused);
  }
  /// Time passes; the hosts that are named with their boots are there, others answer nothing.
  hosted_actions pass(protocol::duration time, const std::map<std::string, std::uint64_t>& heard) {
    hosted_actions all;
    for (const auto& [host, boot] : first_boots)
      if (!heard.contains(host)) all = roles.on_sighting(host, boot, {sight::silent, 800ms}, now);
    for (; time > 0ms; time -= 100ms) {
      now += 100ms;
      for (const auto& [host, boot] : heard) roles.on_work({host, boot, {}}, now);
      for (auto& action : roles.tick(now)) all.push_back(std::move(action));
    }
    return all;
  }
  static protocol::start_report report(const std::string& host, std::uint64_t boot, const role_name& role,
                                       const fence& self, start_state state) {
    return {
        .host = host, .boot = boot, .role = role, .self = self, .state = state, .pid = 100, .why = "exited"};
  }
  /// A worker that runs on beta; alpha has one already.
  void run_worker_on_beta() {
    ASSERT_EQ(all_of<start_here>(roles.start(worker_role({0}), first, now)).size(), 1U);
    ASSERT_EQ(sent<protocol::start_order>(roles.start(worker_role({1}), first, now)).at(0).boot, 7U);
    roles.on_report(report("beta", 7, worker_role({1}), first, start_state::running), now);
  }

  static inline const std::map<std::string, std::uint64_t> first_boots{{"beta", 7}, {"gamma", 8}};
  protocol::time_point now{1h};
  std::string refused;
  hosted_roles roles{{.root = "alpha",
                      .root_cpus = 2,
                      .root_beats_at = "10.0.0.1:4000",
                      .hosts = {{"beta", 0}, {"gamma", 0}}}};
};

} // namespace dlrun::agent::test_hosts
