/// An actor system in virtual time: the test runs its actors, and says how time passes.
#pragma once

#include "actors/protocol/time.hpp"
#include "actors/protocol/type_ids.hpp"

#include <caf/scheduler/test_coordinator.hpp>

namespace dlrun::test {

struct virtual_actors : caf::actor_system_config {
  virtual_actors() {
    set("scheduler.policy", caf::atom("testing"));
    add_message_types<caf::id_block::dlrun>();
  }
};

/// The system and its time. What is spawned in it is to end before it goes.
class virtual_time {
protected:
  static constexpr std::chrono::milliseconds step{100};

  /// Handles all messages that are there.
  void dispatch() {
    while (scheduler.try_run_once()) {
    }
  }
  /// In steps, as long as ticks of actors are apart.
  void pass(std::chrono::milliseconds time) {
    for (; time.count() > 0; time -= step) {
      now += step;
      scheduler.advance_time(step);
      dispatch();
    }
  }

  protocol::time_point now{std::chrono::hours(1)};
  virtual_actors config;
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
};

} // namespace dlrun::test
