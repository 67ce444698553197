/// What Kubernetes wants of the Job of a control pod that is asked to end.
#pragma once

#include "kubernetes/api_client.hpp"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dlrun::kubernetes {

/// Of the Job of a control pod: where the journal of the run is, if not in the run folder.
inline constexpr auto journal_annotation = "dlrun/journal";
inline constexpr auto journal_in_etcd = "etcd";

/// Whether the run of a Job outlives its control pods: what is in `volume` of those is in a claim,
/// or an etcd has what the next one needs (R40).
bool run_outlives_pods(const nlohmann::json& job, const std::string& volume);

/// Whether the Job is to stop with its pod: it is suspended, being deleted, or gone; or its run
/// goes with its pod (run_outlives_pods()). Else another pod goes on with it. Blocks until
/// `give_up` at most.
answer<bool> is_to_stop(api_client& client, const std::string& job, const std::string& volume,
                        time_point give_up);

} // namespace dlrun::kubernetes
