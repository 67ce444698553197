/// What an event says for programs, as JSON: in events.jsonl, and for a program that follows a run.
#pragma once

#include "actors/protocol/messages.hpp"

#include <nlohmann/json_fwd.hpp>

namespace dlrun::agent {

/// Adds `step`, `after_ms`, `values` (`{"loss": ..., <metric>: ...}`), `host` and `reason` to
/// `line`, as far as the event says them. What is not a number becomes null when the line is
/// written.
void add_details(const protocol::job_event& event, nlohmann::ordered_json& line);

} // namespace dlrun::agent
