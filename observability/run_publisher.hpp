/// All that shows a run to the tools of others, as one.
#pragma once

#include "observability/metrics_server.hpp"
#include "observability/run_facts.hpp"
#include "observability/run_metrics.hpp"
#include "observability/tensorboard_log.hpp"
#include "proto/job_spec.pb.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace dlrun::observability {

/// The port that the specification asks for, before anything else of the run is made; null where it
/// asks for none. @returns bad_usage as metrics_server::start() does.
result<std::shared_ptr<metrics_server>> open_port(const spec::ObservabilitySpec& wanted);

/// Is given what the root's display is given. Nothing that goes wrong here ends the run. Not
/// thread-safe.
class run_publisher {
public:
  /// `port`: from open_port(); it is closed with this. `tell` is given an event for the user, when
  /// something goes wrong.
  run_publisher(run_facts facts, const spec::ObservabilitySpec& wanted, std::shared_ptr<metrics_server> port,
                std::function<void(protocol::job_event)> tell);
  ~run_publisher();
  run_publisher(const run_publisher&) = delete;
  run_publisher& operator=(const run_publisher&) = delete;

  /// How far the run is, and the events since the last call; called ten times a second.
  void update(const agent::run_snapshot& now, std::span<const protocol::job_event> events,
              protocol::time_point at);
  /// The end.
  void finish(const dlrun::report& report);

private:
  std::shared_ptr<run_metrics> metrics_; ///< null without a port
  std::shared_ptr<metrics_server> port_;
  std::optional<tensorboard_log> tensorboard_;
};

} // namespace dlrun::observability
