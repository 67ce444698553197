#include "kubernetes/api_transport.hpp"

namespace dlrun::kubernetes {
namespace {

class http_transport final : public api_transport {
public:
  explicit http_transport(const api_place& place)
      : client_({.ca = place.ca_file}) {}

  result<base::http_answer> send(const base::http_request& request,
                                 std::chrono::milliseconds deadline) override {
    return client_.send(request, deadline);
  }

  result<base::http_answer> stream(const base::http_request& request, const base::http_stream& how) override {
    return client_.stream(request, how);
  }

private:
  base::http_client client_;
};

} // namespace

result<std::unique_ptr<api_transport>> make_transport(const api_place& place) {
  if (auto there = base::http_client::check_installed("a job on Kubernetes"); !there)
    return tl::unexpected(there.error());
  return std::make_unique<http_transport>(place);
}

} // namespace dlrun::kubernetes
