/// A job that is to run on pods.
#pragma once

#include "cli/kubernetes_objects.hpp"

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::cli {

/// Reads the job file, and looks whether the job can run on pods such as `wanted` describes: all
/// fields of that but those of the job are set. Fills in these: its text, its grace, its journal,
/// where `wanted.name` is "" the name of the job, and how large the pods are, as settle_sizes()
/// does. Touches no data.
/// @returns bad_spec or bad_usage, naming key, value and way out.
result<void> read_pods_job(const std::string& file, pods_wish& wanted);

} // namespace dlrun::cli
