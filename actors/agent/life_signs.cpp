#include "actors/agent/life_signs.hpp"

#include <utility>

namespace dlrun::agent {
namespace {

using protocol::role_name;
using protocol::time_point;

/// Ticks further apart than this mean that this process was stopped.
constexpr auto pause_min = std::chrono::seconds(2);
/// A heartbeat is due each 100 ms.
constexpr auto signs_lately = std::chrono::seconds(1);

} // namespace

void life_signs::begin(const role_name& role, time_point now) {
  starts_[role] = start{.began = now, .runs = true};
}

void life_signs::end(const role_name& role) { starts_[role].runs = false; }

void life_signs::hear(const role_name& role, time_point now) { starts_[role].heard = now; }

std::vector<role_name> life_signs::tick(time_point now) {
  const bool was_stopped = last_tick_ && now - *last_tick_ > pause_min;
  last_tick_ = now;
  std::vector<role_name> hung;
  for (auto& [role, one] : starts_) {
    if (was_stopped && one.heard) one.heard = now;
    if (!one.runs || one.hung) continue;
    if (now - one.heard.value_or(one.began) < (one.heard ? rules_.hang_after : rules_.start_patience))
      continue;
    one.hung = true;
    hung.push_back(role);
  }
  return hung;
}

std::optional<protocol::duration> life_signs::look(const seen_work& seen, time_point now) {
  auto& one = starts_[seen.role];
  if (one.hung) return std::nullopt;
  const bool gives_signs = one.heard && now - *one.heard < signs_lately;
  patience_.note(one.clock.look(seen.sequence, gives_signs && seen.at, now));
  if (!seen.at || one.clock.time() < patience_.time()) return std::nullopt;
  one.hung = true;
  return one.clock.time();
}

const life_signs::start& life_signs::of(const role_name& role) const {
  static const start none;
  const auto found = starts_.find(role);
  return found == starts_.end() ? none : found->second;
}

bool life_signs::has_settled(const role_name& role) const { return of(role).heard.has_value(); }

bool life_signs::is_hung(const role_name& role) const { return of(role).hung; }

protocol::duration life_signs::silence(const role_name& role, time_point now) const {
  const auto& one = of(role);
  return now - one.heard.value_or(one.began);
}

} // namespace dlrun::agent
