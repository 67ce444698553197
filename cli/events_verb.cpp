#include "base/utf8.hpp"
#include "cli/complain.hpp"
#include "cli/line_tail.hpp"
#include "cli/run_watch.hpp"
#include "cli/verbs.hpp"
#include "job/run_layout.hpp"
#include "runtime/run_files.hpp"
#include "runtime/run_folder.hpp"

#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

constexpr std::size_t damaged_bytes_max = 1000;

struct events_options {
  std::string run_dir;
  std::string name;
  bool follow = false;
  bool json = false;
};

/// The text under `key`; "?" where a damaged line has none there.
std::string text_of(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "?";
}

/// A line that is torn, since the disk was full or the machine lost power, is shown as far as it is
/// text, but to no program.
void show(const std::string& line, const events_options& options) {
  const auto event = nlohmann::json::parse(line, nullptr, false);
  const bool whole = event.is_object();
  if (!options.name.empty() && (!whole || text_of(event, "event") != options.name)) return;
  if (options.json && whole) return say(stdout, "{}\n", line);
  if (options.json) return;
  if (!whole) return say(stdout, "{}\n", base::printable(line, damaged_bytes_max));
  say(stdout, "{}  {}: {}\n", text_of(event, "time"), text_of(event, "event"), text_of(event, "text"));
}

int events(const events_options& options) {
  if (auto folder = runtime::find_run(options.run_dir); !folder) return complain(folder.error());
  const auto file = std::filesystem::path{options.run_dir} / run_layout::events;
  if (auto fine = runtime::check_readable(file); !fine) return complain(fine.error());
  line_tail lines{file};
  const auto show_new = [&] {
    while (const auto line = lines.next()) show(*line, options);
    flush(stdout);
  };
  show_new();
  if (options.follow)
    if (auto watched = follow_run(options.run_dir, [&](const auto&) { show_new(); }); !watched)
      return complain(watched.error());
  if (const auto torn = lines.rest()) show(*torn, options);
  return 0;
}

} // namespace

void add_events(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<events_options>();
  auto* command = app.add_subcommand("events", "Show the failures and recoveries of a run");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->add_option("--event", options->name, "Events of this name alone, e.g. rewind");
  command->add_flag("--follow", options->follow, "Go on with new ones until the run is over");
  command->add_flag("--json", options->json, "One JSON object a line, as in events.jsonl");
  command->callback([options, &chosen] { chosen = [options] { return events(*options); }; });
}

} // namespace dlrun::cli
