#include "cli/complain.hpp"
#include "cli/explanation.hpp"
#include "cli/line_tail.hpp"
#include "cli/verbs.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

struct explain_options {
  std::string run_dir;
  bool json = false;
};

explanation explanation_of(const std::filesystem::path& run_dir) {
  explanation told;
  line_tail lines{run_dir / "events.jsonl"};
  while (const auto line = lines.next()) told.add(*line);
  if (const auto last = lines.rest()) told.add(*last);
  return told;
}

/// What its events do not tell before its first role is placed, its record does.
result<bool> has_hosts(const explanation& told, const std::filesystem::path& run_dir) {
  if (const auto known = told.has_hosts()) return *known;
  const auto record = runtime::read_record(run_dir);
  if (!record) return tl::unexpected(record.error());
  return *record && (*record)->hosts_size() > 0;
}

nlohmann::ordered_json to_json(const explained_role& role) {
  nlohmann::ordered_json made{{"role", role.role}, {"index", role.index}, {"incarnation", role.incarnation},
                              {"host", role.host}, {"since", role.since}, {"reason", role.reason}};
  if (!role.moved_from.empty()) made["moved_from"] = {{"host", role.moved_from}, {"reason", role.why_moved}};
  if (!role.host_lost.empty()) made["host_lost"] = role.host_lost;
  return made;
}

void show_json(const std::vector<explained_role>& roles, bool hosts) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& role : roles) all.push_back(to_json(role));
  say(stdout, "{}\n", nlohmann::ordered_json{{"hosts", hosts}, {"roles", std::move(all)}}.dump());
}

std::string why_of(const explained_role& role) {
  auto why = role.reason;
  if (!role.moved_from.empty())
    why += fmt::format(" (it was on {}{}{})", role.moved_from, role.why_moved.empty() ? "" : ": ",
                       role.why_moved);
  if (!role.host_lost.empty()) why += fmt::format(" ({} is given up: {})", role.host, role.host_lost);
  return why;
}

void show_table(const std::vector<explained_role>& roles) {
  std::size_t host_width = 4;
  for (const auto& role : roles) host_width = std::max(host_width, role.host.size());
  say(stdout, "{:<16} {:<{}}  {:<24}  {}\n", "role", "host", host_width, "since", "why");
  for (const auto& role : roles)
    say(stdout, "{:<16} {:<{}}  {:<24}  {}\n", fmt::format("{} {}", role.role, role.index), role.host,
        host_width, role.since, why_of(role));
}

int explain(const explain_options& options) {
  const auto folder = runtime::find_run(options.run_dir);
  if (!folder) return complain(folder.error());
  const auto told = explanation_of(*folder);
  const auto hosts = has_hosts(told, *folder);
  if (!hosts) return complain(hosts.error());
  const auto roles = told.roles();
  if (options.json) {
    show_json(roles, *hosts);
  } else if (!*hosts) {
    say(stdout, "all roles run on one host, that of 'dlrun {}': it was called without --hosts\n",
        told.is_resumed() ? "resume" : "train");
  } else if (roles.empty()) {
    say(stdout, "no role has had a place yet: a run begins when all of its hosts are there\n");
  } else {
    show_table(roles);
  }
  return 0;
}

} // namespace

void add_explain(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<explain_options>();
  auto* command =
      app.add_subcommand("explain", "Show on which host each role of a run is, why there, and since when");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->add_flag("--json", options->json, "One line of JSON");
  command->footer(
      "Of a run that is over: where each role was last. A role that moved says from where and why.");
  command->callback([options, &chosen] { chosen = [options] { return explain(*options); }; });
}

} // namespace dlrun::cli
