#include "observability/run_publisher.hpp"

namespace dlrun::observability {

result<std::shared_ptr<metrics_server>> open_port(const spec::ObservabilitySpec& wanted) {
  if (wanted.prometheus_port() == 0) return nullptr;
  metrics_place place{.port = static_cast<std::uint16_t>(wanted.prometheus_port())};
  if (wanted.has_prometheus_tls()) {
    const auto& tls = wanted.prometheus_tls();
    place.address = tls.address();
    place.files = {tls.certificate_file(), tls.key_file(), tls.ca_file()};
  }
  auto started = metrics_server::start(place);
  if (!started) return tl::unexpected(started.error());
  return std::move(*started);
}

run_publisher::run_publisher(run_facts facts, const spec::ObservabilitySpec& wanted,
                             std::shared_ptr<metrics_server> port,
                             std::function<void(protocol::job_event)> tell)
    : port_{std::move(port)} {
  if (port_) {
    metrics_ = std::make_shared<run_metrics>(facts);
    port_->serve(metrics_);
  }
  if (wanted.tensorboard())
    tensorboard_.emplace(std::move(facts), [tell = std::move(tell)](std::string why) {
      tell({.event = "tensorboard-failed",
            .role = {protocol::role_kind::agent, 0},
            .incarnation = {1},
            .text = std::move(why)});
    });
}

run_publisher::~run_publisher() {
  if (port_) port_->close();
}

void run_publisher::update(const agent::run_snapshot& now, std::span<const protocol::job_event> events,
                           protocol::time_point at) {
  if (metrics_) {
    for (const auto& event : events) metrics_->event(event);
    metrics_->update(now, at);
  }
  if (tensorboard_) {
    for (const auto& event : events) tensorboard_->event(event);
    tensorboard_->update(now, at);
  }
}

void run_publisher::finish(const dlrun::report& report) {
  if (metrics_) metrics_->finish(report);
  if (tensorboard_) tensorboard_->finish(report);
}

} // namespace dlrun::observability
