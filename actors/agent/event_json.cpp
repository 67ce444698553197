#include "actors/agent/event_json.hpp"

#include <bit>
#include <nlohmann/json.hpp>

namespace dlrun::agent {

void add_details(const protocol::job_event& event, nlohmann::ordered_json& line) {
  const auto& numbers = event.numbers;
  if (numbers.has_step) line["step"] = numbers.step;
  if (numbers.after_us > 0) line["after_ms"] = static_cast<double>(numbers.after_us) / 1000.0;
  for (const auto& [name, bits] : numbers.values) line["values"][name] = std::bit_cast<double>(bits);
  if (!event.place.host.empty()) line["host"] = event.place.host;
  if (!event.place.reason.empty()) line["reason"] = event.place.reason;
}

} // namespace dlrun::agent
