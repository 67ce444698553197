/// Where the API server of Kubernetes is, and as whom a pod asks it.
#pragma once

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::kubernetes {

/// What Kubernetes puts into a container whose service account has its token mounted.
struct api_place {
  std::string url;        ///< "https://10.96.0.1:443"
  std::string name_space; ///< of the pod
  std::string ca_file;    ///< PEM: who signs the server's certificate
  std::string token_file; ///< replaced while the pod runs
};

inline constexpr auto service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";

/// @param host, port values of KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT; null: not set
/// @param folder where token, ca.crt and namespace are. @returns bad_usage when this is no
/// container of a pod, or one without a token.
result<api_place> find_api(const char* host, const char* port,
                           const std::string& folder = service_account_folder);

/// As it is now. @returns bad_usage when there is none.
result<std::string> read_token(const api_place& place);

} // namespace dlrun::kubernetes
