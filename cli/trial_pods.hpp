/// The pods of a job, for Kubernetes to say beforehand whether it would take them.
#pragma once

#include "cli/kubernetes_objects.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlrun::cli {

/// One as it would be made.
struct trial_pod {
  std::string what; ///< for people, as in "a pod of a host"
  std::string manifest;
};

/// Pure: one of each kind. What judges pods alone (Pod Security, LimitRange, quotas) takes a Job
/// whose pods it refuses. They have names that the server makes, because a pod of an earlier job
/// may still be there; no owner; and no account that comes with the job, since the server refuses a
/// pod whose account is not there yet.
std::vector<trial_pod> trial_pods_of(const pods_wish& of);

/// What the server's answer to a trial means.
enum class trial_end {
  taken,
  no_room,    ///< a quota is used up: there may be room later
  not_tried,  ///< the user may not make pods, or what would judge them cannot without making them
  unanswered, ///< no server said anything
  refused,    ///< it would be each time
};

/// @param code of kubectl, and what it complained of
trial_end end_of_trial(int code, std::string_view complaint);

} // namespace dlrun::cli
