/// A run in Prometheus' data model (docs/observability.md lists the metrics).
#pragma once

#include "actors/agent/run_board.hpp"
#include "observability/run_facts.hpp"
#include "observability/sample_rate.hpp"

#include <array>
#include <dlrun/report.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <prometheus/metric_family.h>
#include <set>
#include <string>
#include <vector>

namespace dlrun::observability {

/// Keeps what was heard last, and counts events. Thread-safe.
class run_metrics {
public:
  explicit run_metrics(run_facts facts);

  void update(const agent::run_snapshot& now, protocol::time_point at);
  void event(const protocol::job_event& event);
  void finish(const dlrun::report& report);

  /// All metrics as they are now. What is not known yet is left out.
  std::vector<prometheus::MetricFamily> collect() const;

private:
  static constexpr std::array bucket_seconds{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0};
  /// A histogram.
  struct durations {
    std::array<std::uint64_t, bucket_seconds.size()> up_to{}; ///< of each bucket and those below
    std::uint64_t count = 0;
    double seconds = 0;
    void add(double one);
  };
  /// Of one kind of role.
  struct losses {
    durations detected; ///< last sign of life -> notice
    durations resumed;  ///< notice -> the replacement works; its count is that of the recoveries
  };
  using families = std::vector<prometheus::MetricFamily>;

  void add_resumed(const protocol::role_name& role, dlrun::incarnation incarnation, double seconds);
  void look_for_coordinator(const std::vector<agent::role_view>& roles, protocol::time_point at);
  void collect_progress(families& all) const;
  void collect_training(families& all) const;
  void collect_validation(families& all) const;
  void collect_roles(families& all) const;
  void collect_speeds(families& all) const;
  void collect_copies(families& all) const;
  void collect_stall(families& all) const;
  void collect_losses(families& all) const;
  static prometheus::ClientMetric metric_of(const durations& times, protocol::role_kind kind);

  const run_facts facts_;
  mutable std::mutex mutex_;
  agent::run_snapshot now_;
  sample_rate rate_;
  double samples_per_second_ = 0;
  std::uint64_t samples_ = 0;
  std::optional<dlrun::evaluation> validation_;           ///< newest
  std::map<std::string, std::uint64_t> events_;           ///< how often each
  std::map<protocol::role_name, std::uint64_t> restarts_; ///< of roles that were restarted
  std::map<protocol::role_kind, losses> losses_;          ///< of the kinds that are started again
  std::set<std::pair<protocol::role_name, dlrun::incarnation>> resumed_; ///< starts that were counted
  std::optional<protocol::job_event> coordinator_lost_;                  ///< until another one works
};

} // namespace dlrun::observability
