/// What a person sees while a job runs: a progress bar on a terminal, plain lines elsewhere, a line
/// for each failure.
#pragma once

#include "observability/sample_rate.hpp"
#include "runtime/run_observer.hpp"

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

namespace dlrun::cli {

/// How many columns a terminal has now.
using terminal_columns = std::function<std::size_t()>;

class progress_display final : public runtime::run_observer {
public:
  /// `columns`: of a terminal on which a line can be drawn again; empty for anything else.
  /// `records_per_step` turns steps into samples. `out` is stdout in the product.
  progress_display(std::FILE* out, terminal_columns columns, std::uint64_t records_per_step,
                   protocol::time_point started);

  /// Shows progress: a terminal's line is redrawn at each call; elsewhere a line is printed at most
  /// every two seconds and only when the step has moved.
  void update(const agent::run_snapshot& now, protocol::time_point at) override;
  /// A failure or recovery; always a line of its own.
  void event(const protocol::job_event& event) override;
  void summary(const dlrun::report& report, const std::string& report_path) override;

private:
  std::string speed(const agent::run_snapshot& now, protocol::time_point at);
  void draw(std::string line);
  void clear_bar();

  std::FILE* out_;
  terminal_columns columns_;
  std::uint64_t records_per_step_;
  observability::sample_rate rate_;
  protocol::time_point started_;
  std::size_t drawn_ = 0; ///< characters that stand on the line that is drawn again
  std::optional<protocol::time_point> printed_;
  std::uint64_t printed_step_ = 0;
};

} // namespace dlrun::cli
