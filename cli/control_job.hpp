/// The Job of the control pods.
#pragma once

#include "cli/kubernetes_objects.hpp"

#include <nlohmann/json_fwd.hpp>

namespace dlrun::cli::manifest {

/// Whether a control pod may begin while the one before it is to end: each has a folder of its own,
/// and the etcd has what the next one needs, so that one which is still there, or may be, is in
/// nobody's way (R40).
bool may_overlap(const pods_wish& of);

/// One pod, whose container is started again in place, and goes on with its run; or two, of which
/// one waits. Another pod takes its place when it has ended, and not before where it has the same
/// folder: a run has one root.
nlohmann::ordered_json control_job(const pods_wish& of);

} // namespace dlrun::cli::manifest
