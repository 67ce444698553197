/// The one place that knows all roles: starts any of them in an actor system.
#pragma once

#include "actors/common/job_context.hpp"

namespace dlrun::runtime {

/// Starts the role that `context` names (coordinator, PS shard, keeper or worker).
caf::actor start_role(caf::actor_system& system, common::role_context context);

/// Asks a role to leave: a worker hands back what it has in hand first (R33), any other ends at
/// once.
void ask_to_leave(protocol::role_kind kind, const caf::actor& role);

/// The kind that a bootstrap message names; nothing for an unknown word.
std::optional<protocol::role_kind> role_kind_from(std::string_view word);

} // namespace dlrun::runtime
