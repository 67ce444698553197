#include "cli/told_progress.hpp"

#include <fmt/format.h>

namespace dlrun::cli {
namespace {

std::string result_text(double loss, const dlrun::named_values& metrics) {
  auto text = fmt::format("loss {:.4f}", loss);
  for (const auto& [name, value] : metrics) text += fmt::format("  {} {:.4f}", name, value);
  return text;
}

/// Of one that is completed.
std::string trained_text(const dlrun::report& report) {
  auto text = fmt::format("\ntrain {}", result_text(report.train_loss, report.train_metrics));
  if (report.validation)
    text +=
        fmt::format("  |  validation {}", result_text(report.validation->loss, report.validation->metrics));
  if (report.best)
    text += fmt::format("\nbest {} {:.4f} at step {}", report.best->metric, report.best->value,
                        report.best->step);
  return text + fmt::format("\nparameters_sha256 {}{}", report.parameters_sha256,
                            report.deterministic
                                ? ""
                                : " (cluster.determinism is relaxed: other hosts may make other bits)");
}

} // namespace

std::string short_number(double count) {
  return count >= 10000 ? fmt::format("{:.1f}k", count / 1000) : fmt::format("{:.0f}", count);
}

std::string step_text(const agent::run_snapshot& now) {
  auto text = fmt::format("step {}/{}", now.step, now.steps);
  if (now.train) text += fmt::format("  loss {:.4f}", now.train->step_loss);
  return text;
}

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

std::string speed_text(double rate, double left) {
  if (rate <= 0) return "";
  return fmt::format("  {} samples/s  ETA {:.0f} s", short_number(rate), left / rate);
}

std::string summary_text(const dlrun::report& report, const std::string& report_path) {
  auto text = fmt::format(
      "{}: {} steps, {} samples ({} missing, {} duplicated), {} recoveries, {} steps redone, {:.1f} "
      "s, {} samples/s",
      to_string(report.status), report.steps, report.samples_committed, report.samples_missing,
      report.samples_duplicated, report.recoveries.size(), report.steps_redone, report.wall_seconds,
      short_number(report.samples_per_second));
  if (report.status == dlrun::run_status::completed) text += trained_text(report);
  if (!report_path.empty()) text += fmt::format("\nreport {}", report_path);
  return text;
}

} // namespace dlrun::cli
