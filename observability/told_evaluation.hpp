/// The evaluation that an event tells of.
#pragma once

#include "actors/protocol/event_messages.hpp"

#include <bit>
#include <dlrun/report.hpp>
#include <optional>

namespace dlrun::observability {

/// As it will be in the report, but for `epoch`, which the event does not say. @returns nothing for
/// an event of another kind.
inline std::optional<dlrun::evaluation> told_evaluation(const protocol::job_event& event) {
  if (event.event != "evaluated" || event.numbers.values.empty()) return std::nullopt;
  dlrun::evaluation told{.step = event.numbers.step, .metrics = {}};
  for (const auto& [name, bits] : event.numbers.values)
    told.metrics.all.emplace_back(name, std::bit_cast<double>(bits));
  told.loss = told.metrics.all.front().second; // it comes first
  told.metrics.all.erase(told.metrics.all.begin());
  return told;
}

} // namespace dlrun::observability
