/// What must hold when a job is over.
#pragma once

#include "tests/simulation/world.hpp"

namespace dlrun::simulation {

/// A PS shard was lost where nothing is durable.
void check_failed_as_promised(world& where);
/// @throws violation.
void check_completed(world& where);

} // namespace dlrun::simulation
