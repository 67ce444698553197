#include "cli/log_display.hpp"

#include "actors/agent/event_json.hpp"
#include "cli/log_output.hpp"
#include "cli/standard_streams.hpp"
#include "cli/told_progress.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

namespace dlrun::cli {
namespace {

using nlohmann::ordered_json;

/// Of events: something is lost, was refused or does not work, whether the job mends it or not.
constexpr std::array<std::string_view, 30> failures{
    "archive-failed", "archive-stays",     "beats-blocked",      "copy-lost",         "copy-silent",
    "copy-slow",      "coordinator-moves", "credentials-failed", "disk-full",         "gpu-avoided",
    "host-avoided",   "host-lost",         "host-not-joined",    "host-not-started",  "host-refused",
    "journal-away",   "journal-older",     "logs-stay",          "record-parked",     "rewind",
    "role-exited",    "role-hung",         "role-start-failed",  "run-folder-failed", "slot-suspected",
    "stalled",        "store-missing",     "store-short",        "store-stays",       "tensorboard-failed"};

log_level level_of(const std::string& event) {
  return std::ranges::find(failures, event) == failures.end() ? log_level::info : log_level::warning;
}

void print(std::FILE* out, log_level level, const std::string& message, const ordered_json& fields) {
  put(out, json_log_line(level, message, fields));
  flush(out);
}

} // namespace

log_display::log_display(std::FILE* out, std::uint64_t records_per_step)
    : out_{out}
    , records_per_step_{records_per_step}
    , rate_{records_per_step} {}

void log_display::update(const agent::run_snapshot& now, protocol::time_point at) {
  if (now.steps == 0) return;
  const auto rate = rate_.at_step(now.step, at);
  if (now.step == printed_step_ || (printed_ && at - *printed_ < progress_line_period)) return;
  printed_ = at;
  printed_step_ = now.step;
  ordered_json fields{
      {"type", "progress"}, {"step", now.step}, {"steps", now.steps}, {"durable_step", now.durable_step}};
  if (now.train) {
    fields["epoch"] = now.train->epoch;
    fields["loss"] = now.train->step_loss;
    for (const auto& [name, value] : now.train->metrics)
      if (!fields.contains(name)) fields[name] = value;
  }
  if (rate > 0) fields["samples_per_second"] = rate;
  const auto left = static_cast<double>((now.steps - now.step) * records_per_step_);
  print(out_, log_level::info, step_text(now) + metrics_text(now, std::string::npos) + speed_text(rate, left),
        fields);
}

void log_display::event(const protocol::job_event& event) {
  ordered_json fields{{"type", "event"}};
  fields.update(agent::fields_of(event));
  print(out_, level_of(event.event), fmt::format("{}: {}", event.event, event.text), fields);
}

void log_display::summary(const dlrun::report& report, const std::string& report_path) {
  ordered_json fields{{"type", "report"}};
  const auto whole = ordered_json::parse(dlrun::to_json(report));
  for (const auto& [name, value] : whole.items()) // no lists: container runtimes cut a line after 16 KiB
    if (value.is_primitive()) fields[name] = value;
  if (!report_path.empty()) fields["report"] = report_path;
  print(out_, log_level::info, summary_text(report, report_path), fields);
}

} // namespace dlrun::cli
