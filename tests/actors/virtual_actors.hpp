/// An actor system in virtual time: the test runs its actors, and says how time passes.
#pragma once

#include "actors/protocol/type_ids.hpp"

#include <caf/scheduler/test_coordinator.hpp>

namespace dlrun::test {

struct virtual_actors : caf::actor_system_config {
  virtual_actors() {
    set("scheduler.policy", caf::atom("testing"));
    add_message_types<caf::id_block::dlrun>();
  }
};

} // namespace dlrun::test
