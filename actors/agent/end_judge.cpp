#include "actors/agent/end_judge.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::agent {

namespace {

const char* left_event(protocol::role_kind kind) {
  switch (kind) {
  case protocol::role_kind::worker: return "worker-left";
  case protocol::role_kind::keeper: return "keeper-left";
  default: return "role-left";
  }
}

} // namespace

judged_end end_judge::left(managed_role& role, const protocol::fence& self, const role_end& how, bool settled,
                           std::uint32_t workers) const {
  role.restart_untold = !role.dismissed;
  const auto why = role.dismissed ? fmt::format("{} workers are wanted", workers)
                   : role.vacates ? role.why_vacates
                                  : std::string{"it had a SIGTERM"};
  auto text = fmt::format("{} (incarnation {}) has left: {}{}", protocol::to_string(role.name),
                          self.incarnation, why, how.left ? "" : fmt::format(" ({})", how.cause));
  return {.event = {left_event(role.name.kind), role.name, self.incarnation, std::move(text)},
          .exited = {.role = role.name,
                     .self = self,
                     .cause = how.cause,
                     .replaced = !role.dismissed,
                     .left = true},
          .exit = {how.cause, settled, false}};
}

judged_end end_judge::died(managed_role& role, const protocol::fence& self, const role_end& how,
                           const life_signs& signs, bool is_moved, protocol::time_point now) {
  const bool settled = signs.has_settled(role.name);
  const bool hung = signs.is_hung(role.name);
  const auto silent = signs.silence(role.name, now);
  auto why = hung && signs.is_silent(role.name, now) ? fmt::format("gave no sign of life for {:.1f} s, {}",
                                                                   protocol::to_seconds(silent), how.cause)
                                                     : how.cause;
  const auto slot = hung ? how.killed_in : how.slot;
  if (slot) why += fmt::format(", in {}", protocol::describe(slot->at));
  role.last_failure = why;
  const bool is_keeper = role.name.kind == protocol::role_kind::keeper; // training goes on without
  role.is_hopeless = how.is_lasting && !settled && !is_keeper;
  role.restart_untold = role.is_replaceable && !role.is_hopeless;
  const auto detected_us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, silent.count()));
  auto text = fmt::format("{} (incarnation {}) {}", protocol::to_string(role.name), self.incarnation, why);
  const bool is_excused = slot && state_is_durable_ && excused_.excuses(*slot);
  return {
      .event = {"role-exited", role.name, self.incarnation, std::move(text), {.after_us = detected_us}},
      .exited = {.role = role.name,
                 .self = self,
                 .cause = why,
                 .detected_us = detected_us,
                 .replaced = role.is_replaceable,
                 .has_progress = slot.has_value(),
                 .progress = slot.value_or(protocol::slot_progress{})},
      .exit = {why, settled || is_moved, !is_excused && !is_moved && !is_keeper && !how.is_one_of_several}};
}

protocol::job_event avoided_event(const avoided_gpu& which, const protocol::role_name& role,
                                  dlrun::incarnation start) {
  return {.event = "gpu-avoided",
          .role = role,
          .incarnation = start,
          .text = fmt::format("GPU {} of host {} is avoided from now on: {}", which.gpu, which.host,
                              which.reason),
          .numbers = {.values = {protocol::named_number("gpu", which.gpu)}},
          .place = {which.host, which.reason}};
}

std::optional<std::string> why_job_ends(const managed_role& role) {
  const auto name = protocol::to_string(role.name);
  if (role.is_hopeless)
    return fmt::format("{} {}; it gave no sign of life before, and would again end so: its log says more",
                       name, role.last_failure);
  if (role.is_replaceable) return std::nullopt;
  return fmt::format("{} {}; with 'durability.log: off' what it knew was in its memory only, so the job "
                     "cannot go on. Run it again, with another durability.log to survive this",
                     name, role.last_failure);
}

} // namespace dlrun::agent
