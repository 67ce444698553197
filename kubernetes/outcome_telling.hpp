/// Tells Kubernetes how a job has ended.
#pragma once

#include "kubernetes/api_client.hpp"
#include "kubernetes/job_outcome.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

/// What is told, and where. Names of objects in the namespace of the pod.
struct outcome_telling {
  std::string job; ///< of the control pod
  std::string pod; ///< that tells it
  job_outcome outcome;
  /// In a job that came so far the hosts hear of its end by themselves; they are waited for.
  std::chrono::milliseconds hosts_patience{5000};
};

/// First the Job: annotations, and that it is not to be started again. Then an Event. Then, after a
/// success, a standby that never ran is deleted, since it would hold the Job up. Then the pods
/// of hosts, where that is final: none are wanted any more, and they are deleted, once all have
/// ended or time is up for that, since no root tells those any more that still run. Each of
/// them is tried, whatever became of the others. Blocks until `give_up` at most.
/// @returns what could not be done, and why, one line each
std::vector<std::string> tell_outcome(api_client& client, const outcome_telling& what, time_point give_up);

} // namespace dlrun::kubernetes
