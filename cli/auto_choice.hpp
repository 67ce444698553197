/// What `auto` became, as verbs that begin or go on with a run tell it.
#pragma once

#include "cli/complain.hpp"
#include "runtime/replicas_choice.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace dlrun::cli {

/// What `auto` became as the value of `section.key`, for people or, as an object of that type, for
/// a program.
template <class Value>
void tell_auto(const char* type, const char* section, const char* key, const Value& value,
               const std::string& reason, bool json) {
  if (json)
    say(stdout, "{}\n", nlohmann::ordered_json{{"type", type}, {key, value}, {"reason", reason}}.dump());
  else
    say(stdout, "{}.{}: auto is {}: {}\n", section, key, value, reason);
}

/// And a warning where a job of several hosts has no copies because it asked for none.
inline void tell_replicas(const runtime::replicas_choice& choice, bool json) {
  if (choice.is_auto) tell_auto("replicas", "durability", "replicas", choice.replicas, choice.reason, json);
  if (!choice.degraded.empty()) warn(choice.degraded);
}

} // namespace dlrun::cli
