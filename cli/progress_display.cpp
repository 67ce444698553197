#include "cli/progress_display.hpp"

#include "cli/say.hpp"

#include <algorithm>
#include <fmt/core.h>

namespace dlrun::cli {
namespace {

constexpr auto plain_period = std::chrono::seconds(2);
constexpr std::size_t bar_width = 20;
constexpr std::size_t bar_columns = bar_width + 3; // with its brackets and a space

std::string human(double count) {
  return count >= 10000 ? fmt::format("{:.1f}k", count / 1000) : fmt::format("{:.0f}", count);
}

std::string result_text(double loss, const dlrun::named_values& metrics) {
  auto text = fmt::format("loss {:.4f}", loss);
  for (const auto& [name, value] : metrics) text += fmt::format("  {} {:.4f}", name, value);
  return text;
}

std::string step_text(const agent::run_snapshot& now) {
  auto text = fmt::format("step {}/{}", now.step, now.steps);
  if (now.train) text += fmt::format("  loss {:.4f}", now.train->step_loss);
  return text;
}

/// As many metrics as fit into `room` characters.
std::string metrics_text(const agent::run_snapshot& now, std::size_t room) {
  std::string text;
  if (!now.train) return text;
  for (const auto& [name, value] : now.train->metrics) {
    const auto more = fmt::format("  {} {:.4f}", name, value);
    if (text.size() + more.size() > room) break;
    text += more;
  }
  return text;
}

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
  const auto rate = rate_.at_step(now.step, at);
  if (rate <= 0) return "";
  return fmt::format("  {} samples/s  ETA {:.0f} s", human(rate),
                     static_cast<double>((now.steps - now.step) * records_per_step_) / rate);
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
  } else if (now.step != printed_step_ && (!printed_ || at - *printed_ >= plain_period)) {
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
    say(out_, "\nparameters_sha256 {}{}\n", report.parameters_sha256,
        report.deterministic ? "" : " (cluster.determinism is relaxed: other hosts may make other bits)");
  }
  if (!report_path.empty()) say(out_, "report {}\n", report_path);
  flush(out_);
}

} // namespace dlrun::cli
