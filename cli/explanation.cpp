#include "cli/explanation.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

/// "" where a damaged line has no text there.
std::string text_under(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::uint64_t> number_under(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  if (found == event.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

/// Of its `values`, which are floating-point numbers.
std::optional<std::uint64_t> value_under(const nlohmann::json& event, const char* key) {
  constexpr double value_max = 1e6; // more than there can be of workers or hosts
  const auto values = event.find("values");
  if (values == event.end() || !values->is_object()) return std::nullopt;
  const auto found = values->find(key);
  if (found == values->end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  if (!(value >= 0 && value <= value_max)) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

/// Of a start of a role.
bool is_end(std::string_view event) {
  return event == "role-exited" || event == "role-left" || event == "worker-left" || event == "keeper-left";
}

} // namespace

void explanation::add(std::string_view line) {
  const auto event = nlohmann::json::parse(line, nullptr, false);
  if (!event.is_object()) return;
  const auto name = text_under(event, "event");
  const auto host = text_under(event, "host");
  const role_key role{text_under(event, "role"), number_under(event, "index").value_or(0)};
  if (name == "run-resumed") {
    begin_anew(event);
  } else if (name == "role-placed" && !host.empty()) {
    place(role, event);
  } else if (is_end(name)) {
    if (const auto found = roles_.find(role); found != roles_.end())
      found->second.end = text_under(event, "text");
  } else if (name == "host-lost") {
    lost_[host] = text_under(event, "reason");
  } else if (name == "host-joined") {
    lost_.erase(host);
  } else if (name == "host-draining" || name == "host-drained") {
    drains_[host] = {host, name == "host-drained", text_under(event, "time")};
  } else if (name == "drain-undone") {
    drains_.erase(host);
  } else if (name == "gpu-avoided") {
    avoided_.push_back({value_under(event, "gpu").value_or(0), host, text_under(event, "time"),
                        text_under(event, "reason")});
  } else if (name == "workers-scaled") {
    workers_ = value_under(event, "workers");
  }
}

void explanation::begin_anew(const nlohmann::json& event) {
  *this = explanation{};
  is_resumed_ = true;
  resumed_with_hosts_ = value_under(event, "hosts").has_value();
}

void explanation::place(const role_key& key, const nlohmann::json& event) {
  explained_role now{.role = key.first,
                     .index = key.second,
                     .incarnation = number_under(event, "incarnation").value_or(0),
                     .host = text_under(event, "host"),
                     .since = text_under(event, "time"),
                     .reason = text_under(event, "reason"),
                     .moved_from = {},
                     .why_moved = {},
                     .host_lost = {}};
  if (const auto before = roles_.find(key); before != roles_.end()) {
    now.moved_from = before->second.shown.host;
    const auto lost = lost_.find(now.moved_from);
    now.why_moved = lost != lost_.end() ? fmt::format("host {} is given up: {}", lost->first, lost->second)
                                        : before->second.end;
  }
  roles_[key] = {std::move(now), {}};
}

std::vector<explained_role> explanation::roles() const {
  std::vector<explained_role> all;
  for (const auto& [key, role] : roles_) {
    if (key.first == "worker" && workers_ && key.second >= *workers_) continue;
    all.push_back(role.shown);
    if (const auto lost = lost_.find(role.shown.host); lost != lost_.end())
      all.back().host_lost = lost->second;
  }
  return all;
}

std::vector<explained_drain> explanation::drains() const {
  std::vector<explained_drain> all;
  for (const auto& [host, one] : drains_) all.push_back(one);
  return all;
}

std::optional<bool> explanation::has_hosts() const {
  if (!roles_.empty()) return true;
  return resumed_with_hosts_;
}

} // namespace dlrun::cli
