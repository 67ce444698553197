#include "observability/metrics_server.hpp"

#include "base/ipv4_address.hpp"
#include "base/service_thread.hpp"
#include "base/unique_fd.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <httplib.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <thread>

namespace dlrun::observability {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t server_threads = 2;
/// A client that says nothing holds one of the threads, and the end of the job, for so long.
constexpr std::chrono::seconds client_patience{2};
/// A scrape is some 200 bytes.
constexpr std::size_t request_bytes_max = 4096;

tl::unexpected<error> cannot_listen(const metrics_place& place, const char* why) {
  return fail(error_code::bad_usage,
              fmt::format("observability.prometheus_port: cannot listen on {}:{}: {}; choose another "
                          "{}, or 0 for none",
                          place.address, place.port, why,
                          place.files ? "port or observability.prometheus_tls.address" : "port"));
}

void reuse_address(int socket) {
  const int yes = 1; // and not SO_REUSEPORT: two runs would share a port
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

/// The server itself does not say why it cannot listen.
result<void> check_free(const metrics_place& place) {
  const auto address = base::parse_ipv4_address(fmt::format("{}:{}", place.address, place.port));
  if (!address) return cannot_listen(place, "this is no IPv4 address");
  const base::unique_fd probe{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (probe) reuse_address(probe.get());
  if (!probe || ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(probe.get(), 1) != 0)
    return cannot_listen(place, std::strerror(errno));
  return {};
}

} // namespace

struct metrics_server::parts {
  std::shared_ptr<watched_certificate> certificate{}; ///< outlives the server; null: in clear
  std::unique_ptr<httplib::Server> server{};
  std::atomic<std::shared_ptr<const run_metrics>> served{};
  std::uint16_t port = 0;
  std::atomic<bool> has_ended = false;
  std::thread thread{};

  ~parts();
  void set_up();
};

void metrics_server::parts::set_up() {
  server->set_socket_options(&reuse_address);
  server->set_read_timeout(client_patience);
  server->set_write_timeout(client_patience);
  server->set_keep_alive_max_count(1); // a thread is no scraper's own
  server->set_payload_max_length(request_bytes_max);
  server->new_task_queue = [] { return new httplib::ThreadPool(server_threads); }; // the server owns it
  server->Get("/metrics", [this](const httplib::Request&, httplib::Response& answer) {
    const auto metrics = served.load();
    answer.set_content(metrics ? prometheus::TextSerializer{}.Serialize(metrics->collect()) : "",
                       "text/plain; version=0.0.4; charset=utf-8");
  });
}

metrics_server::parts::~parts() {
  if (!thread.joinable()) return;
  while (!server->is_running() && !has_ended) // until then it cannot be stopped
    std::this_thread::sleep_for(milliseconds(1));
  server->stop();
  thread.join();
}

result<std::unique_ptr<metrics_server>> metrics_server::start(const metrics_place& place) {
  auto made = std::make_unique<parts>();
  if (place.files) {
    auto opened = watched_certificate::open(*place.files, "observability.prometheus_tls");
    if (!opened) return tl::unexpected(opened.error());
    made->certificate = *std::move(opened);
    made->server = std::make_unique<httplib::SSLServer>(
        [&](SSL_CTX& sessions) { return made->certificate->serve(&sessions); });
  } else
    made->server = std::make_unique<httplib::Server>();
  if (auto free = check_free(place); !free) return tl::unexpected(free.error());
  made->set_up();
  const int port = place.port != 0 ? (made->server->bind_to_port(place.address, place.port) ? place.port : -1)
                                   : made->server->bind_to_any_port(place.address);
  if (port <= 0) return cannot_listen(place, "the system refuses it");
  made->port = static_cast<std::uint16_t>(port);
  try {
    made->thread = base::start_service_thread("metrics", [&parts = *made] {
      parts.server->listen_after_bind();
      parts.has_ended = true;
    });
  } catch (const std::system_error& why) {
    return cannot_listen(place, why.what());
  }
  return std::unique_ptr<metrics_server>{new metrics_server{std::move(made)}};
}

metrics_server::metrics_server(std::unique_ptr<parts> made)
    : parts_{std::move(made)} {}

metrics_server::~metrics_server() = default;

std::uint16_t metrics_server::port() const { return parts_ ? parts_->port : 0; }

void metrics_server::serve(std::shared_ptr<const run_metrics> metrics) {
  if (parts_) parts_->served = std::move(metrics);
}

void metrics_server::close() { parts_.reset(); }

} // namespace dlrun::observability
