/// What a run shows while it goes on, and at its end.
#pragma once

#include "actors/agent/run_board.hpp"
#include "actors/protocol/time.hpp"
#include "job/report.hpp"

#include <string>

namespace dlrun::cli {

/// One for people (progress_display), one for programs (json_display). Not thread-safe.
class run_display {
public:
  virtual ~run_display() = default;
  /// How far it is; called ten times a second, so what is shown may be less.
  virtual void update(const agent::run_snapshot& now, protocol::time_point at) = 0;
  /// A failure or recovery.
  virtual void event(const protocol::job_event& event) = 0;
  /// The end. `report_path`: where the report is.
  virtual void summary(const job::report& report, const std::string& report_path) = 0;
};

} // namespace dlrun::cli
