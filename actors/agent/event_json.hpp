/// What an event says for programs, as JSON: in events.jsonl, and for a program that follows a run.
#pragma once

#include "actors/protocol/event_messages.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::agent {

/// Adds `step`, `after_ms`, `values` (`{"loss": ..., <metric>: ...}`), `host` and `reason` to
/// `line`, as far as the event says them. What is not a number becomes null when the line is
/// written.
void add_details(const protocol::job_event& event, nlohmann::ordered_json& line);

/// event, role, index, incarnation, monotonic_us, the details, text; in that order.
nlohmann::ordered_json fields_of(const protocol::job_event& event);

/// A line of events.jsonl, with its newline: the time of the wall clock now, for people, and what
/// fields_of() has.
std::string to_json_line(const protocol::job_event& event);
/// The event again, as another process read the line; what is null is NaN. @returns nothing for a
/// line that is damaged.
std::optional<protocol::job_event> from_json_line(std::string_view line);

} // namespace dlrun::agent
