/// The API server of Kubernetes, as a process in a pod reaches it.
#pragma once

#include "kubernetes/api_client.hpp"

#include <dlrun/error.hpp>
#include <functional>
#include <string>

namespace dlrun::cli {

/// As Kubernetes tells a container. @returns bad_usage in what is no pod, or one without a token.
result<kubernetes::api_place> find_own_api();

/// Uid of the Job of this pod, from the variable that `dlrun manifests` names; "": it names none.
inline constexpr auto job_uid_variable = "JOB_UID";
std::string own_job_uid();

/// Calls `ask` once. @returns bad_usage as find_own_api(), or when libcurl cannot be loaded.
result<void> with_own_api(const std::function<void(kubernetes::api_client&)>& ask);

} // namespace dlrun::cli
