/// Which display shows a run.
#pragma once

#include "actors/protocol/time.hpp"
#include "proto/job_spec.pb.h"
#include "runtime/run_observer.hpp"

#include <memory>

namespace dlrun::cli {

struct display_options {
  bool json = false;                  ///< stdout is for a program
  std::uint64_t records_per_step = 0; ///< 0: not known, so no speed is shown
  protocol::time_point started;       ///< of the run
};

/// A display on stdout: log_display where that is the format of logs, json_display, or
/// progress_display, with a bar where one can be drawn.
std::unique_ptr<runtime::run_observer> make_display(const display_options& options);

/// What turns steps of a job into samples.
std::uint64_t records_per_step(const spec::TrainSpec& train, std::uint64_t train_records);

/// Whether stdout is a terminal on which a line can be drawn again.
bool can_draw_on_stdout();

} // namespace dlrun::cli
