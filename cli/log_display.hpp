/// What a collector of logs gets while a job runs: one JSON object a line (docs/observability.md).
#pragma once

#include "observability/sample_rate.hpp"
#include "runtime/run_observer.hpp"

#include <cstdio>
#include <optional>

namespace dlrun::cli {

/// With what progress_display says as the message, and its numbers and names as fields.
class log_display final : public runtime::run_observer {
public:
  /// `records_per_step` turns steps into samples. `out` is stdout in the product.
  log_display(std::FILE* out, std::uint64_t records_per_step);

  /// At most every two seconds and only when the step has moved: step, steps, loss and metrics.
  void update(const agent::run_snapshot& now, protocol::time_point at) override;
  /// With the fields of events.jsonl. A warning where something has failed.
  void event(const protocol::job_event& event) override;
  /// In one object, with its counts.
  void summary(const dlrun::report& report, const std::string& report_path) override;

private:
  std::FILE* out_;
  std::uint64_t records_per_step_;
  observability::sample_rate rate_;
  std::optional<protocol::time_point> printed_;
  std::uint64_t printed_step_ = 0;
};

} // namespace dlrun::cli
