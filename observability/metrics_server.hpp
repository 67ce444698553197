/// The port on which Prometheus finds a run.
#pragma once

#include "observability/run_metrics.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>

namespace dlrun::observability {

/// Serves `http://127.0.0.1:PORT/metrics` until it is closed. It listens on loopback and nowhere
/// else, and asks nobody who he is: every user of the host may read. One thread owns it.
class metrics_server {
public:
  /// `port` 0: any that is free. The threads that it starts take no signals, and no handler is
  /// changed.
  /// @returns bad_usage, naming port and reason, when it cannot listen there.
  static result<std::unique_ptr<metrics_server>> start(std::uint16_t port);
  ~metrics_server();

  /// 0 when it is closed.
  std::uint16_t port() const;
  /// What is served from now on, once; before, there is nothing.
  void serve(std::shared_ptr<const run_metrics> metrics);
  /// Waits for answers that are under way.
  void close();

private:
  struct parts;
  explicit metrics_server(std::unique_ptr<parts> made);

  std::unique_ptr<parts> parts_;
};

} // namespace dlrun::observability
