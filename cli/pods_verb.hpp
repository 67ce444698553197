/// Verbs for a run folder, called for a job on pods.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace dlrun::cli {

/// Where one of the words is k8s://..., does in the control pod what the verb does, but for `stop`,
/// which Kubernetes does. @param words of the command line behind "dlrun", which make sense
/// @returns the exit code; nothing where no word is such.
std::optional<int> run_on_pods(std::span<const std::string> words);

} // namespace dlrun::cli
