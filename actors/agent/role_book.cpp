#include "actors/agent/role_book.hpp"

#include <utility>

namespace dlrun::agent {

using protocol::role_kind;
using protocol::time_point;

bool role_book::adopt(const protocol::running_start& one, time_point now) {
  if (!roles_.adopt(one)) return false;
  signs_.begin(one.role, now);
  return true;
}

bool role_book::begin(managed_role& role, time_point now) {
  if (!role.wanted || role.current || role.is_hopeless) return false;
  role.current = role.fences.take();
  if (!role.current) return false; // starts when a grant comes
  role.wanted = false;
  role.begin_anew();
  // A keeper often waits for a host, for its PS shard to be somewhere first.
  if (role.name.kind != role_kind::keeper) signs_.begin(role.name, now);
  reports_.set_state(role.name, "starting");
  return true;
}

bool role_book::has_started(managed_role& role, std::int32_t pid, time_point now) {
  const bool has_waited = role.up && role.pid == 0;
  role.pid = pid;
  if (pid == 0) signs_.end(role.name); // nothing of it is there to be heard
  if (pid != 0 && (role.name.kind == role_kind::keeper || has_waited)) signs_.begin(role.name, now);
  if (role.name.kind == role_kind::coordinator) return false;
  role.up = true;
  return true;
}

bool role_book::has_joined(time_point now) {
  auto& coordinator = roles_.coordinator();
  if (std::exchange(coordinator.up, true)) return false;
  signs_.hear(coordinator.name, now);
  return true;
}

void role_book::end(managed_role& role, std::string state) {
  role.current.reset();
  role.up = false;
  role.pid = 0;
  signs_.end(role.name);
  reports_.set_state(role.name, std::move(state));
}

bool role_book::hear(const protocol::heartbeat& beat, time_point now) {
  const bool is_in_hand = roles_.runs(beat.role, beat.self);
  if (!is_in_hand && beat.role.kind != role_kind::data_dispatcher) return false;
  if (is_in_hand) signs_.hear(beat.role, now);
  reports_.hear(beat);
  roles_.hear_staying(beat);
  return true;
}

bool role_book::accepts(const protocol::join& join) const {
  const auto& coordinator = roles_.coordinator();
  return join.role == coordinator.name && coordinator.current == join.self;
}

} // namespace dlrun::agent
