/// The posix_spawn part of process_spawner.
#pragma once

#include "actors/agent/process/child_command.hpp"
#include "base/unique_fd.hpp"

#include <dlrun/error.hpp>
#include <sys/types.h>

namespace dlrun::agent {

/// A child_command with all its descriptors in hand, so that the caller of spawn() may close his.
struct prepared_child {
  child_command spec;
  base::unique_fd standard_input;  ///< Empty: /dev/null.
  base::unique_fd standard_output; ///< Empty: ours.
  base::unique_fd standard_error;
  std::vector<base::unique_fd> inherit; ///< The child gets them as 3, 4, ... in this order.
};

/// Duplicates the descriptors, puts the bootstrap data into a memfd, and appends the options that
/// name them.
result<prepared_child> prepare(child_command spec);

/// Starts it. The calling thread becomes the one that the child's parent-death signal is tied to.
/// @returns the pid of a child that nobody has waited for, or why the program could not be started:
/// bad_usage when it never can be (there is none, it is not executable).
result<pid_t> launch(const prepared_child& child);

} // namespace dlrun::agent
