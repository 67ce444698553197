/// What a person sees while a job runs: a progress bar on a terminal, plain lines elsewhere, a line for each
/// failure.
#pragma once

#include "observability/sample_rate.hpp"
#include "runtime/run_observer.hpp"

#include <cstdio>
#include <optional>
#include <string>

namespace dlrun::cli {

class progress_display final : public runtime::run_observer {
public:
  /// `records_per_step` turns steps into samples. `out` is stdout in the product.
  progress_display(std::FILE* out, bool terminal, std::uint64_t records_per_step,
                   protocol::time_point started);

  /// Shows progress: a terminal's line is redrawn at each call; elsewhere a line is printed at most every two
  /// seconds and only when the step has moved.
  void update(const agent::run_snapshot& now, protocol::time_point at) override;
  /// A failure or recovery; always a line of its own.
  void event(const protocol::job_event& event) override;
  void summary(const dlrun::report& report, const std::string& report_path) override;

private:
  std::string line(const agent::run_snapshot& now, protocol::time_point at);
  std::string room_for(const named_values& metrics, std::size_t taken) const;
  void clear_bar();

  std::FILE* out_;
  bool terminal_;
  std::uint64_t records_per_step_;
  observability::sample_rate rate_;
  protocol::time_point started_;
  bool bar_shown_ = false;
  std::optional<protocol::time_point> printed_;
  std::uint64_t printed_step_ = 0;
};

} // namespace dlrun::cli
