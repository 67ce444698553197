/// What Kubernetes wants of the Job of a control pod that is asked to end.
#pragma once

#include "kubernetes/api_client.hpp"

#include <string>

namespace dlrun::kubernetes {

/// Whether the Job is to stop with its pod: it is suspended, being deleted, or gone; or what is in
/// `volume` of its pods goes with each pod, since it is in no claim. Else another pod goes on with
/// it. Blocks until `give_up` at most.
answer<bool> is_to_stop(api_client& client, const std::string& job, const std::string& volume,
                        time_point give_up);

} // namespace dlrun::kubernetes
