#include "cli/complain.hpp"
#include "cli/log_lines.hpp"
#include "cli/root_request.hpp"
#include "cli/run_watch.hpp"
#include "cli/verbs.hpp"
#include "cli/whole_number.hpp"
#include "job/run_layout.hpp"
#include "runtime/run_files.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/run_record.hpp"

#include <deque>

namespace dlrun::cli {
namespace {

struct logs_options {
  std::string run_dir;
  log_filter filter;
  std::optional<std::size_t> lines;
  bool follow = false;
  bool json = false;
};

void show(const log_line& line, bool json) { say(stdout, "{}\n", json ? to_json(line) : line.whole); }

/// The newest `count` lines of those that are there.
void show_last(log_merger& logs, std::size_t count, bool json) {
  std::deque<log_line> last;
  while (auto line = logs.next()) {
    last.push_back(std::move(*line));
    if (last.size() > count) last.pop_front();
  }
  for (const auto& line : last) show(line, json);
}

/// The other hosts that the run ever had; none of one whose record cannot be read, which `resume`
/// tells.
std::vector<hosted_folder> hosts_of(const std::filesystem::path& run_dir) {
  std::vector<hosted_folder> hosts;
  if (const auto record = runtime::read_record(run_dir); record && *record)
    for (const auto& host : (*record)->hosts()) hosts.push_back({host.name(), host.folder()});
  return hosts;
}

result<void> check_logs_readable(const std::filesystem::path& run_dir) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir / run_layout::logs, ignored))
    if (auto fine = runtime::check_readable(entry.path()); !fine) return fine;
  return {};
}

void tell_missing(log_merger& logs, bool is_over) {
  for (const auto& text : logs.missing(is_over)) cli::warn(text);
}

int logs(const logs_options& options) {
  if (auto known = check(options.filter); !known) return complain(known.error());
  const auto run_dir = runtime::find_run(options.run_dir);
  if (!run_dir) return complain(run_dir.error());
  if (auto fine = check_logs_readable(*run_dir); !fine) return complain(fine.error());
  log_merger merged{*run_dir, options.filter, hosts_of(*run_dir),
                    [&](const auto& request) { return ask_root(*run_dir, request); }};
  if (!options.follow) merged.take_rests();
  if (options.lines) show_last(merged, *options.lines, options.json);
  const auto show_new = [&] {
    while (const auto line = merged.next()) show(*line, options.json);
    flush(stdout);
    tell_missing(merged, false);
  };
  show_new();
  result<void> watched;
  if (options.follow) {
    watched = follow_run(*run_dir, [&](const auto&) { show_new(); });
    merged.take_rests();
    show_new();
  }
  tell_missing(merged, true);
  return watched ? 0 : complain(watched.error());
}

} // namespace

void add_logs(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<logs_options>();
  auto* command = app.add_subcommand("logs", "Show the logs of a run's roles, merged by time");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->add_option("--role", options->filter.role,
                      "Of this role alone: worker, ps_shard, ..., or worker-1");
  command->add_option("--level", options->filter.level, "This level and worse, e.g. warning");
  command->add_option("--lines", options->lines, "Only the newest so many of those that are there")
      ->check(whole_number());
  command->add_flag("--follow", options->follow, "Go on with new lines until the run is over");
  command->add_flag("--json", options->json, "One JSON object a line");
  command->footer("Examples:\n"
                  "  dlrun logs runs/fashion-mnist-cnn --follow\n"
                  "  dlrun logs runs/fashion-mnist-cnn --role ps_shard-0 --level warning --lines 20");
  command->callback([options, &chosen] { chosen = [options] { return logs(*options); }; });
}

} // namespace dlrun::cli
