#include "kubernetes/api_place.hpp"

#include <fmt/format.h>
#include <fstream>
#include <iterator>

namespace dlrun::kubernetes {
namespace {

/// All of a small file, without the end of its line.
result<std::string> contents_of(const std::string& file) {
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (!text.empty()) return text;
  return fail(error_code::bad_usage,
              fmt::format("'{}' cannot be read: the pod needs a service account whose token is mounted "
                          "(automountServiceAccountToken: true)",
                          file));
}

} // namespace

result<api_place> find_api(const char* host, const char* port, const std::string& folder) {
  if (host == nullptr || *host == '\0' || port == nullptr || *port == '\0')
    return fail(error_code::bad_usage, "this is no pod of Kubernetes: KUBERNETES_SERVICE_HOST and "
                                       "KUBERNETES_SERVICE_PORT are not set");
  auto name_space = contents_of(folder + "/namespace");
  if (!name_space) return tl::unexpected(name_space.error());
  const std::string name{host};
  const bool is_ipv6 = name.find(':') != name.npos;
  return api_place{.url =
                       fmt::format("https://{}{}{}:{}", is_ipv6 ? "[" : "", name, is_ipv6 ? "]" : "", port),
                   .name_space = *std::move(name_space),
                   .ca_file = folder + "/ca.crt",
                   .token_file = folder + "/token"};
}

result<std::string> read_token(const api_place& place) { return contents_of(place.token_file); }

} // namespace dlrun::kubernetes
