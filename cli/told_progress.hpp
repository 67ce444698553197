/// What is said of the progress and the end of a run, in words for people.
#pragma once

#include "actors/agent/run_board.hpp"

#include <chrono>
#include <dlrun/report.hpp>
#include <string>

namespace dlrun::cli {

/// Between two lines of progress.
inline constexpr std::chrono::seconds progress_line_period{2};

/// "12.3k"
std::string short_number(double count);
/// "step 5/1000  loss 0.1234"
std::string step_text(const agent::run_snapshot& now);
/// As many metrics as fit into `room` characters.
std::string metrics_text(const agent::run_snapshot& now, std::size_t room);
/// "  1234 samples/s  ETA 5 s"; "" while `rate`, samples a second, is not known. @param left samples
std::string speed_text(double rate, double left);
/// How it ended: up to five lines, the last one without a newline. @param report_path "": none
std::string summary_text(const dlrun::report& report, const std::string& report_path);

} // namespace dlrun::cli
