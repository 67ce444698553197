/// The port on which Prometheus finds a run.
#pragma once

#include "observability/run_metrics.hpp"
#include "observability/watched_certificate.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>
#include <optional>
#include <string>

namespace dlrun::observability {

/// Where a run is served.
struct metrics_place {
  std::uint16_t port = 0; ///< 0: any that is free
  /// Of this host, IPv4. Others than this host reach another one than that of loopback, so with
  /// such a one goes `files`.
  std::string address = "127.0.0.1";
  std::optional<certificate_files> files{}; ///< for TLS; nothing: in clear, to everybody
};

/// Serves `/metrics` there until it is closed. In clear it asks nobody who he is: every user of the
/// host may read. Over TLS (1.3) a client shows a certificate of the authority of the files, which
/// may be replaced meanwhile. One thread owns it.
class metrics_server {
public:
  /// The threads that it starts take no signals. SIGPIPE is ignored from then on.
  /// @returns bad_usage, naming place and reason, when it cannot listen there, or with such files.
  static result<std::unique_ptr<metrics_server>> start(const metrics_place& place);
  ~metrics_server();

  /// 0 when it is closed.
  std::uint16_t port() const;
  /// What is served from now on, once; before, there is nothing.
  void serve(std::shared_ptr<const run_metrics> metrics);
  /// Waits for answers that are under way, a few seconds at most.
  void close();

private:
  struct parts;
  explicit metrics_server(std::unique_ptr<parts> made);

  std::unique_ptr<parts> parts_;
};

} // namespace dlrun::observability
