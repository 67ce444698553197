#include "cli/resumed_run.hpp"

#include "cli/auto_choice.hpp"
#include "cli/complain.hpp"
#include "cli/json_display.hpp"
#include "job/run_layout.hpp"

namespace dlrun::cli {

void say_completed(const std::filesystem::path& folder, bool json) {
  const auto path = folder / run_layout::report;
  if (const auto report = dlrun::read_report(path); json && report)
    return json_display{stdout, {}}.summary(*report, path.string());
  say(json ? stderr : stdout,
      "the run in '{}' is completed: there is nothing left to train (see report.json there)\n",
      folder.string());
}

verb_end run_resumed(const runtime::resumption& resumed, const std::optional<runtime::hosts_plan>& hosts,
                     const display_choice& how, stop_signals& signals) {
  if (resumed.replicas) tell_replicas(*resumed.replicas, how.json);
  if (!resumed.missing.empty()) warn(resumed.missing);
  if (!hosts && !resumed.left_behind.empty()) warn(resumed.left_behind);
  return run_displayed(*resumed.job,
                       {.run_dir = resumed.folder.path(),
                        .coordinator = resumed.coordinator,
                        .hosts = hosts,
                        .is_same_job = resumed.is_same_job,
                        .copies_may_wait = resumed.replicas && resumed.replicas->is_auto,
                        .change = resumed.change,
                        .gathers = resumed.gathers,
                        .home = resumed.home},
                       how, signals);
}

} // namespace dlrun::cli
