/// What of the template for the pods of hosts an overlay may not change.
#pragma once

#include <dlrun/error.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dlrun::cli {

/// Pure. With another program, other arguments, no place for the run or no key, a pod would never
/// be a host of the job; and its owner is the control pod's to name.
/// @param place of the template, for people
/// @returns bad_usage, naming place and key, where it is so
result<void> check_pod_template(const nlohmann::json& pod_template, const std::string& job,
                                const std::string& place);

} // namespace dlrun::cli
