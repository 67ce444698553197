/// The API server of Kubernetes, as a process in a pod reaches it.
#pragma once

#include "kubernetes/api_client.hpp"

#include <dlrun/error.hpp>
#include <functional>

namespace dlrun::cli {

/// As Kubernetes tells a container. @returns bad_usage in what is no pod, or one without a token.
result<kubernetes::api_place> find_own_api();

/// Calls `ask` once. @returns bad_usage as find_own_api(), or when libcurl cannot be loaded.
result<void> with_own_api(const std::function<void(kubernetes::api_client&)>& ask);

} // namespace dlrun::cli
