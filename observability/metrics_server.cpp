#include "observability/metrics_server.hpp"

#include "base/service_thread.hpp"
#include "base/unique_fd.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>

namespace dlrun::observability {
namespace {

constexpr std::size_t server_threads = 2;

class served_metrics final : public prometheus::Collectable {
public:
  explicit served_metrics(std::shared_ptr<const run_metrics> metrics)
      : metrics_{std::move(metrics)} {}
  std::vector<prometheus::MetricFamily> Collect() const override { return metrics_->collect(); }

private:
  std::shared_ptr<const run_metrics> metrics_;
};

tl::unexpected<error> cannot_listen(std::uint16_t port, const char* why) {
  return fail(error_code::bad_usage,
              fmt::format("observability.prometheus_port: cannot listen on 127.0.0.1:{}: {}; choose another "
                          "port, or 0 for none",
                          port, why));
}

/// The server itself does not say why it cannot listen.
result<void> check_free(std::uint16_t port) {
  const base::unique_fd probe{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!probe || ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(probe.get(), 1) != 0)
    return cannot_listen(port, std::strerror(errno));
  return {};
}

} // namespace

struct metrics_server::parts {
  prometheus::Exposer exposer;
  std::shared_ptr<served_metrics> served{}; ///< the exposer does not own it
};

result<std::unique_ptr<metrics_server>> metrics_server::start(std::uint16_t port) {
  if (auto free = check_free(port); !free) return tl::unexpected(free.error());
  const base::blocked_signals blocked; // of the threads that the server starts
  try {
    std::unique_ptr<parts> made{
        new parts{prometheus::Exposer{fmt::format("127.0.0.1:{}", port), server_threads}}};
    return std::unique_ptr<metrics_server>{new metrics_server{std::move(made)}};
  } catch (const std::exception& why) {
    return cannot_listen(port, why.what());
  }
}

metrics_server::metrics_server(std::unique_ptr<parts> made)
    : parts_{std::move(made)} {}

metrics_server::~metrics_server() = default;

std::uint16_t metrics_server::port() const {
  if (!parts_) return 0;
  const auto ports = parts_->exposer.GetListeningPorts();
  return ports.empty() ? 0 : static_cast<std::uint16_t>(ports.front());
}

void metrics_server::serve(std::shared_ptr<const run_metrics> metrics) {
  if (!parts_) return;
  parts_->served = std::make_shared<served_metrics>(std::move(metrics));
  parts_->exposer.RegisterCollectable(parts_->served);
}

void metrics_server::close() { parts_.reset(); }

} // namespace dlrun::observability
