#include "cli/own_api.hpp"

#include <cstdlib>
#include <utility>

namespace dlrun::cli {

result<kubernetes::api_place> find_own_api() {
  return kubernetes::find_api(std::getenv("KUBERNETES_SERVICE_HOST"), std::getenv("KUBERNETES_SERVICE_PORT"));
}

std::string own_job_uid() {
  const char* uid = std::getenv(job_uid_variable);
  return uid == nullptr ? "" : uid;
}

result<void> with_own_api(const std::function<void(kubernetes::api_client&)>& ask) {
  auto place = find_own_api();
  if (!place) return tl::unexpected(place.error());
  const auto transport = kubernetes::make_transport(*place);
  if (!transport) return tl::unexpected(transport.error());
  kubernetes::api_client client{*std::move(place), **transport, kubernetes::real_time()};
  ask(client);
  return {};
}

} // namespace dlrun::cli
