#include "actors/agent/host_departures.hpp"

namespace dlrun::agent {

using protocol::time_point;

std::vector<std::string> host_departures::may_go(const host_roster& roster,
                                                 const hosted_starts& starts) const {
  std::vector<std::string> all;
  if (are_held_) return all;
  for (const auto& [host, state] : roster.states())
    if (state == host_state::leaving && !starts.has_worker_on(host)) all.push_back(host);
  return all;
}

void host_departures::dismiss(const std::string& reason, const host_roster& roster, hosted_actions& out) {
  dismissed_ = reason;
  send_dismissals(roster, out);
}

void host_departures::repeat_dismissals(const host_roster& roster, time_point now, hosted_actions& out) {
  if (dismissed_.empty() || (repeated_ && now - *repeated_ < repeat_after_)) return;
  repeated_ = now;
  send_dismissals(roster, out);
}

/// To all that have not gone yet: one may be lost with a link that is found again.
void host_departures::send_dismissals(const host_roster& roster, hosted_actions& out) const {
  for (const auto& [host, state] : roster.states())
    if (const auto boot = roster.boot_of(host))
      out.push_back(to_host{host, protocol::dismissal{*boot, dismissed_}});
}

void send_workers_away(const std::string& host, hosted_starts& starts, time_point now, hosted_actions& out) {
  for (auto& [key, one] : starts.all())
    if (one.host == host && key.first.kind == protocol::role_kind::worker)
      starts.stop(key.first, one, protocol::stop_how::leave, now, out);
}

} // namespace dlrun::agent
