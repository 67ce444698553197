#include "cli/attached_run.hpp"

#include "actors/agent/event_json.hpp"
#include "job/run_layout.hpp"
#include "runtime/missing_stores.hpp"
#include "runtime/run_record.hpp"

#include <fmt/format.h>

namespace dlrun::cli {

attached_run::attached_run(std::filesystem::path run_dir, display_maker make_display)
    : run_dir_{std::move(run_dir)}
    , events_{run_dir_ / run_layout::events}
    , make_display_{std::move(make_display)} {
  while (events_.next()) {
  } // of before
}

void attached_run::look(const std::string& status, protocol::time_point now) {
  const auto told = agent::progress_from_json(status);
  const bool is_known = told && told->steps > 0; // the first moments of a root say nothing yet
  if (!display_ && is_known)
    display_ = make_display_(protocol::time_point{protocol::duration{told->started_us}});
  if (!display_) return;
  while (const auto line = events_.next())
    if (const auto event = agent::from_json_line(*line)) display_->event(*event);
  if (is_known) display_->update(*told, now);
}

result<dlrun::report> attached_run::end(protocol::time_point now) {
  const auto path = run_dir_ / run_layout::report;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return fail(
        error_code::bad_usage,
        fmt::format("the run in '{}' is not running, and ended without a report: '{}' goes on from what "
                    "is on disk",
                    run_dir_.string(), runtime::resume_command(run_dir_)));
  auto report = dlrun::read_report(path);
  if (!report) return report;
  if (!display_) display_ = make_display_(now);
  if (auto lacking = runtime::why_not_whole(run_dir_, *report); !lacking.empty())
    return fail(error_code::role_lost, std::move(lacking));
  display_->summary(*report, path.string());
  return report;
}

} // namespace dlrun::cli
