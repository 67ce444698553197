#include "cli/hosted_logs.hpp"

#include "actors/agent/control_socket.hpp"
#include "actors/agent/event_json.hpp"
#include "actors/agent/log_files.hpp"
#include "job/run_layout.hpp"
#include "runtime/host_logs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {

hosted_logs::hosted_logs(std::filesystem::path run_dir, std::vector<hosted_folder> hosts, root_asker ask)
    : run_dir_{std::move(run_dir)}
    , ask_{std::move(ask)}
    , events_{run_dir_ / run_layout::events} {
  for (auto& one : hosts) hosts_[one.host].at = one;
}

std::vector<std::shared_ptr<host_log>> hosted_logs::look() {
  found_logs found;
  if (hosts_.empty()) return found;
  read_events();
  bool answers = true; // one that does not is not asked for every host
  for (auto& [name, one] : hosts_) {
    if (!answers) one.now = reach::unknown;
    answers = answers && ask_for_listing(one, found);
    if (one.now == reach::there) continue;
    for (auto& [role, log] : one.logs) log->lost();
    find_copies(one, found);
  }
  return found;
}

void hosted_logs::read_events() {
  while (const auto line = events_.next()) {
    const auto event = agent::from_json_line(*line);
    if (!event) continue;
    const auto found = hosts_.find(event->place.host);
    if (found == hosts_.end()) continue;
    auto& one = found->second;
    if (event->event == "logs-stay") one.stays = event->place.reason;
    if (event->event != "role-placed") continue;
    one.placed.insert(event->role);
    one.stays.clear(); // that was of a start before
  }
}

/// @returns whether the root answers.
bool hosted_logs::ask_for_listing(known_host& one, found_logs& found) {
  const auto answer = ask_(fmt::format("logs {}", one.at.host));
  one.now = reach::unknown;
  if (!answer || answer->empty()) return false;
  const auto rest = std::string_view{*answer}.substr(1);
  switch (answer->front()) {
  case runtime::log_sign_answer:
    one.now = reach::there;
    one.told.clear();
    take_listing(one, rest, found);
    break;
  case runtime::log_sign_over: one.now = reach::over; break;
  default:
    one.now = reach::away;
    one.away_since = rest;
    break;
  }
  return true;
}

void hosted_logs::take_listing(known_host& one, std::string_view listing, found_logs& found) {
  const auto read = nlohmann::json::parse(listing, nullptr, false);
  try {
    for (const auto& entry : read.at("logs")) {
      const auto name = fmt::format("{}-{}.log", entry.at(0).get<std::string>(), entry.at(1).dump());
      const auto bytes = entry.at(2).get<std::uint64_t>();
      if (const auto role = agent::role_of_log(name)) log_of(one, *role, found).reached(bytes);
    }
  } catch (const nlohmann::json::exception&) { // no root of this version
    one.now = reach::away;
    one.away_since = "the root of the run does not tell of it";
  }
}

void hosted_logs::find_copies(known_host& one, found_logs& found) {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(agent::copied_logs(run_dir_, one.at.host), ignored))
    if (const auto role = agent::role_of_log(entry.path())) log_of(one, *role, found);
}

host_log& hosted_logs::log_of(known_host& one, const protocol::role_name& role, found_logs& found) {
  auto& log = one.logs[role];
  if (log) return *log;
  const auto name = fmt::format("{}-{}.log", protocol::to_string(role.kind), role.index);
  log = std::make_shared<host_log>(one.at.host, role, agent::copied_logs(run_dir_, one.at.host) / name, ask_);
  found.push_back(log);
  return *log;
}

/// "" when the log is not missing.
std::string hosted_logs::why_missing(const known_host& one, const protocol::role_name& role,
                                     bool is_over) const {
  if (one.now == reach::there) return "";
  if (one.now == reach::away) return one.away_since;
  if (!is_over) return "";
  std::error_code ignored;
  if (one.now == reach::unknown && std::filesystem::exists(run_dir_ / run_layout::agent, ignored))
    return "the root of the run does not answer, and has not copied them";
  if (!one.stays.empty()) return one.stays;
  const auto log = one.logs.find(role);
  return log != one.logs.end() && log->second->is_copied() ? "" : "they were not copied";
}

std::vector<std::string> hosted_logs::missing(bool is_over,
                                              const std::function<bool(const protocol::role_name&)>& wanted) {
  std::vector<std::string> all;
  for (auto& [name, one] : hosts_) {
    std::vector<std::string> roles;
    std::string why;
    for (const auto& role : one.placed) {
      const auto reason = wanted(role) ? why_missing(one, role, is_over) : "";
      if (reason.empty()) continue;
      roles.push_back(protocol::to_string(role));
      why = reason;
    }
    if (roles.empty() || one.told == why) continue;
    one.told = why;
    all.push_back(fmt::format("of these roles on host {}, the logs are missing, or not whole: {} ({}); they "
                              "are in '{}' there",
                              name, fmt::join(roles, ", "), why,
                              (std::filesystem::path{one.at.folder} / run_layout::logs).string()));
  }
  return all;
}

} // namespace dlrun::cli
