#include "actors/agent/event_json.hpp"

#include "base/wall_time.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace dlrun::agent {
namespace {

using nlohmann::ordered_json;
using protocol::role_kind;

constexpr std::array role_kinds{role_kind::coordinator, role_kind::data_dispatcher, role_kind::ps_shard,
                                role_kind::worker,      role_kind::agent,           role_kind::host_agent,
                                role_kind::keeper};

std::optional<role_kind> role_kind_of(const std::string& name) {
  for (const auto kind : role_kinds)
    if (protocol::to_string(kind) == name) return kind;
  return std::nullopt;
}

/// What add_details() added.
void read_details(const ordered_json& line, protocol::job_event& event) {
  if (const auto step = line.find("step"); step != line.end()) {
    event.numbers.has_step = true;
    step->get_to(event.numbers.step);
  }
  event.numbers.after_us = static_cast<std::uint64_t>(std::llround(1000 * line.value("after_ms", 0.0)));
  event.place = {line.value("host", ""), line.value("reason", "")};
  const auto values = line.find("values");
  if (values == line.end()) return;
  for (const auto& [name, value] : values->items())
    event.numbers.values.push_back(protocol::named_number(
        name, value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>()));
}

/// What is counted or numbered is no measurement: it has no decimal point.
constexpr std::array<std::string_view, 9> counts{"acknowledged", "bytes", "found", "gpu",    "hosts",
                                                 "known",        "roles", "slot",  "workers"};

ordered_json value_of(const std::string& name, double value) {
  const bool is_count = std::ranges::find(counts, name) != counts.end() && std::trunc(value) == value;
  return is_count ? ordered_json(std::llround(value)) : ordered_json(value);
}

} // namespace

void add_details(const protocol::job_event& event, nlohmann::ordered_json& line) {
  const auto& numbers = event.numbers;
  if (numbers.has_step) line["step"] = numbers.step;
  if (numbers.after_us > 0) line["after_ms"] = static_cast<double>(numbers.after_us) / 1000.0;
  for (const auto& [name, bits] : numbers.values)
    line["values"][name] = value_of(name, std::bit_cast<double>(bits));
  if (!event.place.host.empty()) line["host"] = event.place.host;
  if (!event.place.reason.empty()) line["reason"] = event.place.reason;
}

nlohmann::ordered_json fields_of(const protocol::job_event& event) {
  ordered_json fields{{"event", event.event},
                      {"role", protocol::to_string(event.role.kind)},
                      {"index", event.role.index},
                      {"incarnation", event.incarnation.value},
                      {"monotonic_us", event.at_us}};
  add_details(event, fields);
  fields["text"] = event.text;
  return fields;
}

std::string to_json_line(const protocol::job_event& event) {
  ordered_json line{{"time", base::wall_time()}};
  line.update(fields_of(event));
  // A path in the text need not be UTF-8.
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::optional<protocol::job_event> from_json_line(std::string_view line) {
  const auto told = ordered_json::parse(line, nullptr, false);
  protocol::job_event event;
  try {
    told.at("event").get_to(event.event);
    told.at("text").get_to(event.text);
    told.at("index").get_to(event.role.index);
    told.at("incarnation").get_to(event.incarnation.value);
    told.at("monotonic_us").get_to(event.at_us);
    const auto kind = role_kind_of(told.at("role").get<std::string>());
    if (!kind) return std::nullopt;
    event.role.kind = *kind;
    read_details(told, event);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return event;
}

} // namespace dlrun::agent
