/// What ends a simulated worker while it computes.
#pragma once

#include "actors/worker/worker_core.hpp"
#include "tests/simulation/scenario.hpp"

#include <optional>

namespace dlrun::simulation {

/// Where a worker dies by its own doing.
struct deadly_place {
  protocol::slot_progress at;
  bool hangs = false;
};

/// Where who carries out `order` dies, if he does: at the first slot, and there the first trial,
/// whose records kill together.
std::optional<deadly_place> death_in(const scenario& plan, const worker::compute_gradient& order,
                                     protocol::planted_bug bug);
/// Where who carries out `order` is when he is killed from outside at the hunted slot; nothing when
/// that is not one of his.
std::optional<protocol::slot_progress> hunted_in(const scenario& plan, const worker::compute_gradient& order);

} // namespace dlrun::simulation
