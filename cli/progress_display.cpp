#include "cli/progress_display.hpp"

#include "cli/say.hpp"
#include "cli/told_progress.hpp"

#include <algorithm>
#include <fmt/core.h>

namespace dlrun::cli {
namespace {

constexpr std::size_t bar_width = 20;
constexpr std::size_t bar_columns = bar_width + 3; // with its brackets and a space

/// What a line of `columns` has room for, its last column left free: one that breaks could not be
/// drawn again. Metrics give way first, then the bar, then the speed.
std::string bar_line(const agent::run_snapshot& now, const std::string& speed, std::size_t columns) {
  const auto room = columns > 0 ? columns - 1 : 0;
  const auto step = step_text(now);
  if (step.size() + speed.size() > room) return step.substr(0, room);
  const auto left = room - step.size() - speed.size();
  if (left < bar_columns) return step + speed;
  const auto filled = static_cast<std::size_t>(now.step * bar_width / now.steps);
  return fmt::format("[{}{}] {}{}{}", std::string(filled, '#'), std::string(bar_width - filled, '.'), step,
                     metrics_text(now, left - bar_columns), speed);
}

} // namespace

progress_display::progress_display(std::FILE* out, terminal_columns columns, std::uint64_t records_per_step,
                                   protocol::time_point started)
    : out_{out}
    , columns_{std::move(columns)}
    , records_per_step_{records_per_step}
    , rate_{records_per_step}
    , started_{started} {}

std::string progress_display::speed(const agent::run_snapshot& now, protocol::time_point at) {
  return speed_text(rate_.at_step(now.step, at),
                    static_cast<double>((now.steps - now.step) * records_per_step_));
}

/// Over what was drawn before.
void progress_display::draw(std::string line) {
  const auto length = line.size();
  if (length < drawn_) line.append(drawn_ - length, ' ');
  say(out_, "\r{}", line);
  drawn_ = length;
}

void progress_display::clear_bar() {
  if (drawn_ == 0) return;
  draw("");
  say(out_, "\r");
}

void progress_display::update(const agent::run_snapshot& now, protocol::time_point at) {
  if (now.steps == 0) return;
  const auto how_fast = speed(now, at);
  if (columns_) {
    const auto columns = columns_();
    drawn_ = std::min(drawn_, columns > 0 ? columns - 1 : 0); // it may be narrower than it was
    draw(bar_line(now, how_fast, columns));
  } else if (now.step != printed_step_ && (!printed_ || at - *printed_ >= progress_line_period)) {
    printed_ = at;
    printed_step_ = now.step;
    say(out_, "{:7.1f} s  {}{}{}\n", protocol::to_seconds(at - started_), step_text(now),
        metrics_text(now, std::string::npos), how_fast);
  }
  flush(out_);
}

void progress_display::event(const protocol::job_event& event) {
  clear_bar();
  const auto at = protocol::time_point{protocol::duration{event.at_us}};
  say(out_, "{:7.1f} s  {}: {}\n", protocol::to_seconds(at - started_), event.event, event.text);
  flush(out_);
}

void progress_display::summary(const dlrun::report& report, const std::string& report_path) {
  clear_bar();
  say(out_, "{}\n", summary_text(report, report_path));
  flush(out_);
}

} // namespace dlrun::cli
