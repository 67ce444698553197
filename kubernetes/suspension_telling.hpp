/// Tells Kubernetes what a Job that is suspended can go on with, and deletes the pods of its hosts.
#pragma once

#include "kubernetes/api_client.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

// Of the Job of the control pod: when it was suspended last, and the step that it had come to.
inline constexpr auto suspended_annotation = "dlrun/suspended";
inline constexpr auto suspended_step_annotation = "dlrun/suspended-at-step";

/// What is left of a run that has ended.
struct suspension {
  std::string job;    ///< of the control pod
  std::string volume; ///< of its pods, with the run folder
  std::uint64_t step = 0;
  std::string lacking{}; ///< what pods of hosts alone have, for people; "": nothing
  std::chrono::system_clock::time_point at{};
};

/// Where the Job is still suspended, and is to leave nothing but its run folder: annotations, then
/// the pods of hosts are deleted, unless something is lacking. Blocks until `give_up` at most.
/// @returns what could not be done, or is not done, and why, one line each
std::vector<std::string> tell_suspension(api_client& client, const suspension& what, time_point give_up);

} // namespace dlrun::kubernetes
