#include "actors/common/clock.hpp"
#include "base/shell_word.hpp"
#include "cli/attached_run.hpp"
#include "cli/complain.hpp"
#include "cli/root_request.hpp"
#include "cli/run_display.hpp"
#include "cli/run_watch.hpp"
#include "cli/stop_signals.hpp"
#include "cli/verbs.hpp"
#include "job/run_layout.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/run_record.hpp"

#include <utility>

namespace dlrun::cli {
namespace {

struct attach_options {
  std::string run_dir;
  bool json = false;
};

/// A root has the folder and does not answer yet, or any more.
bool is_between(const std::filesystem::path& run_dir) {
  if (!runtime::has_root(run_dir)) return false;
  const auto answer = ask_root(run_dir, "status");
  std::error_code ignored;
  const bool is_elsewhere = !answer && answer.error().code == error_code::bad_usage &&
                            std::filesystem::exists(run_dir / run_layout::agent, ignored);
  return !answer && !is_elsewhere && answer.error().code != error_code::timed_out;
}

/// 0 where it is not known: a run of dlrun 0.1 has no record until it is resumed.
std::uint64_t records_per_step_of(const std::filesystem::path& run_dir) {
  const auto record = runtime::read_record(run_dir);
  if (!record || !*record || (*record)->revisions().empty()) return 0;
  return records_per_step((*record)->revisions().rbegin()->train(), (*record)->train_records());
}

attached_run attach_to(const std::filesystem::path& run_dir, bool json) {
  return {run_dir, [run_dir, json](protocol::time_point started) {
            return make_display(
                {.json = json, .records_per_step = records_per_step_of(run_dir), .started = started});
          }};
}

/// Somebody does not want to look any more.
int detach(const attach_options& options) {
  if (!options.json && can_draw_on_stdout()) say(stdout, "\n"); // behind the bar
  complain(fmt::format("detached; the job keeps going: 'dlrun attach {0}' shows it again, 'dlrun stop {0}' "
                       "ends it",
                       base::shell_word(options.run_dir)));
  return static_cast<int>(job::exit_code::interrupted);
}

int attach(const attach_options& options) {
  const auto run_dir = runtime::find_run(options.run_dir);
  if (!run_dir) return complain(run_dir.error());
  stop_signals signals;
  auto shown = attach_to(*run_dir, options.json);
  while (is_between(*run_dir))
    if (signals.wait(look_period)) return detach(options);
  bool is_told = options.json;
  bool is_enough = false;
  const auto watched = follow_run(
      *run_dir,
      [&](const auto& status) {
        if (!status.empty() && !std::exchange(is_told, true))
          say(stderr, "attached to the run in '{}': Ctrl-C detaches, and the job keeps going\n",
              run_dir->string());
        shown.look(status, common::now());
      },
      [&] {
        is_enough = signals.wait(look_period).has_value();
        return !is_enough;
      });
  if (!watched) return complain(watched.error());
  if (is_enough) return detach(options);
  const auto report = shown.end(common::now());
  return report ? complain_of(*report) : complain(report.error());
}

} // namespace

void add_attach(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<attach_options>();
  auto* command = app.add_subcommand("attach", "Show a running job as 'train' would, until it ends");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->add_flag("--json", options->json, "Progress, events and the report as JSON, one object a line");
  command->footer(
      "Ctrl-C detaches, with exit code 130, and the job keeps going; 'dlrun stop' ends it. Else the "
      "exit code is\nthat of the job, as of 'train'. Any number may be attached, and a run that is "
      "over shows its end.");
  command->callback([options, &chosen] { chosen = [options] { return attach(*options); }; });
}

} // namespace dlrun::cli
