#include "cli/progress_display.hpp"

#include "cli/say.hpp"

#include <algorithm>
#include <fmt/core.h>

namespace dlrun::cli {
namespace {

constexpr auto plain_period = std::chrono::seconds(2);
constexpr std::size_t bar_width = 20;
constexpr std::size_t bar_columns = bar_width + 3; // with its brackets and a space
constexpr std::size_t line_columns = 79;

std::string human(double count) {
  return count >= 10000 ? fmt::format("{:.1f}k", count / 1000) : fmt::format("{:.0f}", count);
}

std::string result_text(double loss, const dlrun::named_values& metrics) {
  auto text = fmt::format("loss {:.4f}", loss);
  for (const auto& [name, value] : metrics) text += fmt::format("  {} {:.4f}", name, value);
  return text;
}

} // namespace

progress_display::progress_display(std::FILE* out, bool terminal, std::uint64_t records_per_step,
                                   protocol::time_point started)
    : out_{out}
    , terminal_{terminal}
    , records_per_step_{records_per_step}
    , rate_{records_per_step}
    , started_{started} {}

std::string progress_display::line(const agent::run_snapshot& now, protocol::time_point at) {
  const auto rate = rate_.at_step(now.step, at);
  auto text = fmt::format("step {}/{}", now.step, now.steps);
  if (now.train) text += fmt::format("  loss {:.4f}", now.train->step_loss);
  std::string speed;
  if (rate > 0)
    speed = fmt::format("  {} samples/s  ETA {:.0f} s", human(rate),
                        static_cast<double>((now.steps - now.step) * records_per_step_) / rate);
  return text + (now.train ? room_for(now.train->metrics, text.size() + speed.size()) : "") + speed;
}

/// As many metrics as fit beside `taken` characters: a terminal's line that breaks could not be drawn again.
std::string progress_display::room_for(const named_values& metrics, std::size_t taken) const {
  std::string text;
  for (const auto& [name, value] : metrics) {
    const auto more = fmt::format("  {} {:.4f}", name, value);
    if (terminal_ && bar_columns + taken + text.size() + more.size() > line_columns) break;
    text += more;
  }
  return text;
}

void progress_display::clear_bar() {
  if (std::exchange(bar_shown_, false)) say(out_, "\r\033[K");
}

void progress_display::update(const agent::run_snapshot& now, protocol::time_point at) {
  if (now.steps == 0) return;
  const auto text = line(now, at);
  if (terminal_) {
    const auto filled = static_cast<std::size_t>(now.step * bar_width / now.steps);
    say(out_, "\r\033[K[{}{}] {}", std::string(filled, '#'), std::string(bar_width - filled, '.'), text);
    bar_shown_ = true;
  } else if (now.step != printed_step_ && (!printed_ || at - *printed_ >= plain_period)) {
    printed_ = at;
    printed_step_ = now.step;
    say(out_, "{:7.1f} s  {}\n", protocol::to_seconds(at - started_), text);
  }
  std::fflush(out_);
}

void progress_display::event(const protocol::job_event& event) {
  clear_bar();
  const auto at = protocol::time_point{protocol::duration{event.at_us}};
  say(out_, "{:7.1f} s  {}: {}\n", protocol::to_seconds(at - started_), event.event, event.text);
  std::fflush(out_);
}

void progress_display::summary(const dlrun::report& report, const std::string& report_path) {
  clear_bar();
  say(out_,
      "{}: {} steps, {} samples ({} missing, {} duplicated), {} recoveries, {} steps redone, {:.1f} "
      "s, {} samples/s\n",
      to_string(report.status), report.steps, report.samples_committed, report.samples_missing,
      report.samples_duplicated, report.recoveries.size(), report.steps_redone, report.wall_seconds,
      human(report.samples_per_second));
  if (report.status == dlrun::run_status::completed) {
    say(out_, "train {}", result_text(report.train_loss, report.train_metrics));
    if (report.validation)
      say(out_, "  |  validation {}", result_text(report.validation->loss, report.validation->metrics));
    if (report.best)
      say(out_, "\nbest {} {:.4f} at step {}", report.best->metric, report.best->value, report.best->step);
    say(out_, "\nparameters_sha256 {}\n", report.parameters_sha256);
  }
  say(out_, "report {}\n", report_path);
  std::fflush(out_);
}

} // namespace dlrun::cli
