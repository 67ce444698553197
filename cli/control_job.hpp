/// The Job of the control pods.
#pragma once

#include "cli/kubernetes_objects.hpp"

#include <nlohmann/json_fwd.hpp>

namespace dlrun::cli::manifest {

/// One pod, whose container is started again in place, and goes on with its run; or two, of which
/// one waits. Another pod takes its place when it has ended, and not before where it has the same
/// folder: a run has one root.
nlohmann::ordered_json control_job(const pods_wish& of);

} // namespace dlrun::cli::manifest
