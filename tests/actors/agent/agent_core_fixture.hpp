/// An agent's core, and the shell that does what it says: for its tests.
#pragma once

#include "actors/agent/agent_core.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::agent {

/// An agent of one PS shard and two workers, and the shell that does what it says.
struct agent_core_test : ::testing::Test {
  using role_kind = protocol::role_kind;
  using role_name = protocol::role_name;

  static constexpr role_name coordinator{role_kind::coordinator, 0};
  static constexpr role_name shard{role_kind::ps_shard, 0};
  static constexpr role_name worker0{role_kind::worker, 0};
  static constexpr role_name worker1{role_kind::worker, 1};
  static constexpr protocol::fence coordinator_fence{{1}, 77};
  static constexpr std::uint64_t coordinator_process = 55;

  static protocol::join joining(const role_name& role, const protocol::fence& self) {
    return {role, self, 100, {}, {}};
  }

  explicit agent_core_test(bool durable = false, std::optional<protocol::duration> journal_patience = {})
      : core{{.workers = 2,
              .ps_shards = 1,
              .scale = {.least = 1, .most = 4, .slots = 4},
              .leave_grace = std::chrono::milliseconds(5000),
              .agent = 9,
              .coordinator = coordinator_fence,
              .state_is_durable = durable,
              .restart_intensity = 2,
              .journal_patience = journal_patience}} {}

  agent_core core;
  protocol::time_point now{std::chrono::hours(1)};
  std::vector<role_name> started;
  std::vector<std::pair<role_name, bool>> stopped; ///< and whether it was a kill
  std::vector<role_name> asked_to_leave;
  std::map<role_name, protocol::fence> running;
  std::vector<std::string> events;
  std::vector<protocol::event_numbers> numbers; ///< of each event
  std::vector<protocol::role_exited> exits_told;
  std::vector<protocol::stop_job> stops_told;
  std::vector<protocol::scale_job> scales_told;
  std::vector<role_name> starts_told;
  std::optional<protocol::job_ended> ended;
  std::optional<error> start_failure; ///< of all starts to come
  bool gives_signs = true;            ///< who is started, at once
  bool starts_are_heard = true;       ///< that they run; else at most their end

  void follow(const agent_actions& actions) {
    for (const auto& action : actions) std::visit([this](const auto& what) { follow_one(what); }, action);
  }
  void follow_one(const start_role& what) {
    started.push_back(what.role);
    if (start_failure) return follow(core.on_start_failed(what.role, what.self, *start_failure, now));
    running[what.role] = what.self;
    if (!starts_are_heard) return;
    follow(core.on_started(what.role, what.self, 100, now));
    if (gives_signs) core.on_heartbeat({.role = what.role, .self = what.self, .state = "starting"}, now);
  }
  void follow_one(const stop_role& what) {
    if (what.how == protocol::stop_how::leave) return asked_to_leave.push_back(what.role);
    stopped.emplace_back(what.role, what.how == protocol::stop_how::kill);
  }
  void follow_one(const to_coordinator& what) {
    if (const auto* exited = std::get_if<protocol::role_exited>(&what)) exits_told.push_back(*exited);
    if (const auto* stop = std::get_if<protocol::stop_job>(&what)) stops_told.push_back(*stop);
    if (const auto* start = std::get_if<protocol::role_started>(&what)) starts_told.push_back(start->role);
    if (const auto* scale = std::get_if<protocol::scale_job>(&what)) scales_told.push_back(*scale);
  }
  void follow_one(const announce& what) {
    events.push_back(what.event.event);
    numbers.push_back(what.event.numbers);
  }
  void follow_one(const all_stopped& what) { ended = what.ended; }

  void grant(const role_name& role, std::uint64_t first, std::uint64_t count = 2) {
    protocol::grant message{role, {}};
    for (auto i = first; i < first + count; ++i) message.fences.push_back({{i}, i * 1000});
    follow(core.on_grant(message, now));
  }
  void start_all() {
    follow(core.start(now));
    follow(core.on_coordinator_joined(coordinator_process, now));
    for (const auto& role : {shard, worker0, worker1}) grant(role, 1);
  }
  void exit(const role_name& role) { exit(role, {"killed by signal 9"}); }
  void exit(const role_name& role, const role_end& how) {
    const auto self = running.at(role);
    running.erase(role);
    follow(core.on_exited(role, self, how, now));
  }
  void beat(const role_name& role) {
    core.on_heartbeat(
        {.role = role, .self = running.at(role), .state = "training", .step = 5, .durable_step = 3}, now);
  }
};

} // namespace dlrun::agent
