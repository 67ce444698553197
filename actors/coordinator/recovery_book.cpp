#include "actors/coordinator/recovery_book.hpp"

#include <algorithm>

namespace dlrun::coordinator {

using protocol::role_kind;
using protocol::role_name;
using protocol::time_point;

void recovery_book::add(const protocol::role_exited& exited, time_point now) {
  recovery_record record;
  record.role = exited.role;
  record.lost = exited.self.incarnation;
  record.cause = exited.cause;
  record.noticed = now - protocol::duration(exited.age_us);
  record.detected = protocol::duration(exited.detected_us);
  const auto found = resumed_.find(exited.role);
  if (found != resumed_.end() && found->second.by > record.lost) {
    record.replacement = found->second.by;
    record.resumed = std::max(protocol::duration::zero(), found->second.at - record.noticed);
  }
  all_.push_back(std::move(record));
}

bool recovery_book::has(const role_name& role, incarnation lost) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const auto& one) { return one.role == role && one.lost == lost; });
}

void recovery_book::on_replaced(const role_name& role, incarnation by) {
  for (auto& one : all_)
    if (one.role == role && one.lost < by && one.replacement.value == 0) one.replacement = by;
}

void recovery_book::on_redispatched(worker_id lost, incarnation incarnation, protocol::duration after) {
  for (auto& one : all_)
    if (one.role == protocol::worker_role(lost) && one.lost == incarnation) one.redispatched = after;
}

std::vector<recovery_record> recovery_book::on_resumed(const role_name& role, incarnation incarnation,
                                                       time_point now) {
  std::vector<recovery_record> made_good;
  auto& newest = resumed_.try_emplace(role, resumption{incarnation, now}).first->second;
  if (incarnation > newest.by) newest = {incarnation, now};
  for (auto& one : all_) {
    if (one.role != role || one.lost >= incarnation || one.resumed) continue;
    one.replacement = incarnation;
    one.resumed = now - one.noticed;
    made_good.push_back(one);
  }
  return made_good;
}

void recovery_book::on_steps_redone(std::uint64_t steps) {
  const auto newest = [&](auto is_cause) {
    const auto found = std::find_if(all_.rbegin(), all_.rend(), is_cause);
    return found == all_.rend() ? nullptr : &*found;
  };
  auto* cause = newest([](const auto& one) { return one.role.kind == role_kind::ps_shard && !one.resumed; });
  if (cause == nullptr)
    cause = newest([](const auto& one) { return one.role.kind != role_kind::coordinator; });
  if (cause != nullptr) cause->steps_redone += steps;
}

} // namespace dlrun::coordinator
