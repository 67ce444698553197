/// What Kubernetes is asked before a job is submitted. Nothing is made by it.
#pragma once

#include "cli/kubectl.hpp"
#include "cli/kubectl_words.hpp"
#include "cli/kubernetes_objects.hpp"

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::cli {

/// Whether the server takes a job, as it is described: its names are free, and the server would
/// take its objects and its pods. What stops nothing is said on stderr. @param manifests of the
/// objects
/// @returns bad_usage with what is wrong, system where that cannot be asked.
result<void> check_submit(const kubectl& cluster, const pods_target& of, const pods_wish& pods,
                          const std::string& manifests);

} // namespace dlrun::cli
