#include "actors/agent/run_board.hpp"
#include "actors/protocol/roles.hpp"
#include "cli/complain.hpp"
#include "cli/explanation.hpp"
#include "cli/line_tail.hpp"
#include "cli/root_request.hpp"
#include "cli/told_copies.hpp"
#include "cli/verbs.hpp"
#include "job/run_layout.hpp"
#include "runtime/kept_stores.hpp"
#include "runtime/root_secrets.hpp"
#include "runtime/run_files.hpp"
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
  line_tail lines{run_dir / run_layout::events};
  while (const auto line = lines.next()) told.add(*line);
  if (const auto last = lines.rest()) told.add(*last);
  return told;
}

/// What its events do not tell before its first role is placed, its record does, or, while it waits
/// for hosts that may join, what its root keeps for them.
result<bool> has_hosts(const explanation& told, const std::filesystem::path& run_dir) {
  if (const auto known = told.has_hosts()) return *known;
  const auto record = runtime::read_record(run_dir);
  if (!record) return tl::unexpected(record.error());
  return (*record && (*record)->hosts_size() > 0) || runtime::root_secrets::are_left(run_dir);
}

nlohmann::ordered_json to_json(const explained_role& role) {
  nlohmann::ordered_json made{{"role", role.role}, {"index", role.index}, {"incarnation", role.incarnation},
                              {"host", role.host}, {"since", role.since}, {"reason", role.reason}};
  if (!role.moved_from.empty()) made["moved_from"] = {{"host", role.moved_from}, {"reason", role.why_moved}};
  if (!role.host_lost.empty()) made["host_lost"] = role.host_lost;
  return made;
}

// ---- stores

/// One entry a PS shard that has one, with its index.
using told_stores = result<nlohmann::ordered_json>;

nlohmann::ordered_json store_entry(std::uint64_t index, const nlohmann::ordered_json& store) {
  nlohmann::ordered_json entry{{"ps_shard", index}};
  entry.update(store);
  return entry;
}

/// What the root of a run that goes on says; null when there is none.
/// @returns timed_out when it does not answer: what is on the disk is its own then.
result<nlohmann::ordered_json> status_of_root(const std::filesystem::path& run_dir) {
  const auto answer = ask_root(run_dir, "status");
  if (!answer && answer.error().code == error_code::timed_out) return tl::unexpected(answer.error());
  auto status = answer ? nlohmann::ordered_json::parse(*answer, nullptr, false) : nullptr;
  return status.is_object() ? std::move(status) : nullptr;
}

nlohmann::ordered_json stores_in(const nlohmann::ordered_json& status) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& role : status.value("roles", nlohmann::ordered_json::array()))
    if (role.contains("store")) {
      const bool is_copy = role.value("role", "") == "keeper";
      const protocol::role_name name{is_copy ? protocol::role_kind::keeper : protocol::role_kind::ps_shard,
                                     role.value("index", 0U)};
      all.push_back(store_entry(protocol::shard_of(name).value, role["store"]));
      if (is_copy) all.back()["copy"] = role.value("state", "?");
      if (role.contains("copy")) all.back()["behind"] = role["copy"].value("behind", std::uint64_t{0});
    }
  return all;
}

told_stores stores_of(const std::filesystem::path& run_dir, const result<nlohmann::ordered_json>& status) {
  if (!status) return tl::unexpected(status.error());
  if (!status->is_null()) return stores_in(*status);
  const auto kept = runtime::kept_stores(run_dir);
  if (!kept) return tl::unexpected(kept.error());
  auto all = nlohmann::ordered_json::array();
  for (const auto& [shard, known] : *kept)
    all.push_back(store_entry(shard.value, agent::store_to_json(known.store, known.restorable)));
  return all;
}

/// "0, 120 to 480"
std::string words_of(const nlohmann::ordered_json& versions) {
  base::version_set all;
  for (const auto& range : versions)
    insert(all, {{range.at(0).get<std::uint64_t>()}, {range.at(1).get<std::uint64_t>()}});
  return base::to_string(all);
}

/// "ps_shard 1", or of the store of its keeper "ps_shard 1, copy (whole)", where it lacks some also
/// "ps_shard 1, copy (whole, 2 behind)".
std::string name_of(const nlohmann::ordered_json& store) {
  const auto shard = fmt::format("ps_shard {}", store.at("ps_shard").get<std::uint64_t>());
  if (!store.contains("copy")) return shard;
  const auto behind = store.value("behind", std::uint64_t{0});
  return fmt::format("{}, copy ({}{})", shard, store.at("copy").get<std::string>(),
                     behind > 0 ? fmt::format(", {} behind", behind) : "");
}

void show_stores(const told_stores& stores) {
  if (!stores)
    return say(stdout, "what the stores of PS shards hold is not known: {}\n", stores.error().message);
  if (stores->empty()) return;
  std::size_t name_width = 16;
  std::size_t host_width = 4;
  std::size_t versions_width = 8;
  for (const auto& store : *stores) {
    name_width = std::max(name_width, name_of(store).size());
    host_width = std::max(host_width, store.at("host").get<std::string>().size());
    versions_width = std::max(versions_width, words_of(store.at("versions")).size());
  }
  say(stdout, "{:<{}} {:<{}}  {:<8}  {:<{}}  {}\n", "store of", name_width, "host", host_width, "identity",
      "versions", versions_width, "floor");
  for (const auto& store : *stores)
    say(stdout, "{:<{}} {:<{}}  {:<8}  {:<{}}  {}\n", name_of(store), name_width,
        store.at("host").get<std::string>(), host_width, store.at("identity").get<std::string>().substr(0, 8),
        words_of(store.at("versions")), versions_width, store.at("floor").get<std::uint64_t>());
}

// ---- all of it

void show_json(const explanation& told, bool hosts, const told_stores& stores,
               const nlohmann::ordered_json& status) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& role : told.roles()) all.push_back(to_json(role));
  nlohmann::ordered_json shown{{"hosts", hosts}, {"roles", std::move(all)}};
  for (const auto& one : told.avoided_gpus())
    shown["avoided_gpus"].push_back(
        {{"gpu", one.gpu}, {"host", one.host}, {"since", one.since}, {"reason", one.reason}});
  for (const auto& one : told.drains())
    shown["drains"].push_back(
        {{"host", one.host}, {"state", one.is_over ? "drained" : "draining"}, {"since", one.since}});
  if (stores)
    shown["stores"] = *stores;
  else
    shown["stores_unknown"] = stores.error().message;
  if (status.contains("hosts"))
    for (const auto& host : status["hosts"])
      if (host.contains("loses"))
        shown["losses"].push_back({{"host", host["name"]}, {"loses", host["loses"]}});
  say(stdout, "{}\n", shown.dump());
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
  if (auto fine = runtime::check_readable(*folder / run_layout::events); !fine) return complain(fine.error());
  const auto told = explanation_of(*folder);
  const auto hosts = has_hosts(told, *folder);
  if (!hosts) return complain(hosts.error());
  const auto roles = told.roles();
  const auto answer = status_of_root(*folder);
  const auto stores = stores_of(*folder, answer);
  const auto status = answer.value_or(nullptr);
  if (options.json) {
    show_json(told, *hosts, stores, status);
    return 0;
  }
  if (!*hosts) {
    say(stdout, "all roles run on one host, that of 'dlrun {}': it was called without --hosts\n",
        told.is_resumed() ? "resume" : "train");
  } else if (roles.empty()) {
    say(stdout, "no role has had a place yet: a run begins when all of its hosts are there\n");
  } else {
    show_table(roles);
  }
  for (const auto& one : told.drains())
    say(stdout, "host {} is {} since {}{}\n", one.host, one.is_over ? "drained" : "being drained", one.since,
        one.is_over ? ": it may be switched off" : "");
  for (const auto& one : told.avoided_gpus())
    say(stdout, "GPU {} of host {} is avoided since {}: {}\n", one.gpu, one.host, one.since, one.reason);
  show_stores(stores);
  for (const auto& line : tell_losses(status)) say(stdout, "{}\n", line);
  return 0;
}

} // namespace

void add_explain(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<explain_options>();
  auto* command = app.add_subcommand(
      "explain", "Show on which host each role of a run is and why, and what the stores of PS "
                 "shards hold");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->add_flag("--json", options->json, "One line of JSON");
  command->footer("Of a run that is over: where each role was last, and what its journal knows of the "
                  "stores. A role that "
                  "moved says from where and why.");
  command->callback([options, &chosen] { chosen = [options] { return explain(*options); }; });
}

} // namespace dlrun::cli
