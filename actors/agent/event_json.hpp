/// The numbers of an event as JSON: in events.jsonl, and for a program that follows a run.
#pragma once

#include "actors/protocol/messages.hpp"

#include <nlohmann/json_fwd.hpp>

namespace dlrun::agent {

/// Adds `step`, `after_ms` and `values` (`{"loss": ..., <metric>: ...}`) to `line`, as far as the
/// event says them. What is not a number becomes null when the line is written.
void add_numbers(const protocol::event_numbers& numbers, nlohmann::ordered_json& line);

} // namespace dlrun::agent
