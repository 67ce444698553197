#include "actors/agent/hosted_starts.hpp"

#include <algorithm>

namespace dlrun::agent {

using protocol::role_kind;
using protocol::role_name;
using protocol::time_point;

void hosted_starts::order(const role_name& role, hosted_start one, time_point now, hosted_actions& out) {
  auto& kept = all_[{role, one.self.incarnation}] = std::move(one);
  send(role, kept, now, out);
}

void hosted_starts::stop(const role_name& role, hosted_start& one, protocol::stop_how how, time_point now,
                         hosted_actions& out) {
  one.stop = std::max(how, one.stop.value_or(how));
  send(role, one, now, out);
}

/// All that the host has not answered yet.
void hosted_starts::send(const role_name& role, hosted_start& one, time_point now,
                         hosted_actions& out) const {
  one.sent = now;
  if (!one.is_answered)
    out.push_back(to_host{
        *one.host, protocol::start_order{one.boot, role, one.self, coordinator_, coordinator_at_, {}}});
  if (one.stop) out.push_back(to_host{*one.host, protocol::stop_order{one.boot, role, one.self, *one.stop}});
}

void hosted_starts::send_again(const std::string& host, time_point now, hosted_actions& out) {
  for (auto& [key, one] : all_)
    if (one.host == host) send(key.first, one, now, out);
}

void hosted_starts::repeat(time_point now, hosted_actions& out) {
  for (auto& [key, one] : all_)
    if (one.host && (!one.is_answered || one.stop) && now - one.sent >= repeat_after_)
      send(key.first, one, now, out);
}

hosted_start* hosted_starts::find(const start_key& which) {
  const auto found = all_.find(which);
  return found == all_.end() ? nullptr : &found->second;
}

const hosted_start* hosted_starts::find(const role_name& role, const protocol::fence& self) const {
  const auto found = all_.find({role, self.incarnation});
  return found == all_.end() || found->second.self != self ? nullptr : &found->second;
}

bool hosted_starts::has_worker_on(const std::string& host) const {
  return std::ranges::any_of(all_, [&](const auto& entry) {
    return entry.second.host == host && entry.first.first.kind == role_kind::worker;
  });
}

const role_name* hosted_starts::unheard_copy(ps_shard_id shard) const {
  const auto found = std::ranges::find_if(all_, [&](const auto& entry) {
    return protocol::keeps_copy_of(entry.first.first, shard) && entry.second.is_unheard;
  });
  return found == all_.end() ? nullptr : &found->first.first;
}

} // namespace dlrun::agent
