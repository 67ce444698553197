#include "actors/agent/found_starts.hpp"

#include "actors/agent/host_events.hpp"

namespace dlrun::agent {

using protocol::role_kind;
using protocol::running_start;

void found_starts::note(const protocol::host_joined& joined, hosted_starts& starts) {
  if (has_chosen_) return;
  for (const auto& one : joined.running) {
    found_[{one.role, one.self.incarnation}] = one;
    starts.put(one.role, {.self = one.self, .host = joined.host, .boot = joined.boot, .is_answered = true});
  }
}

std::vector<running_start> found_starts::take_over(hosted_starts& starts, placement& places,
                                                   protocol::time_point now, hosted_actions& out) {
  has_chosen_ = true;
  std::map<protocol::role_name, running_start> newest; // keys come in the order of incarnations
  for (const auto& [key, one] : found_)
    if (starts.find(key) != nullptr) newest[key.first] = one;
  std::vector<running_start> all;
  for (const auto& [key, one] : found_) {
    auto* at = starts.find(key);
    if (at == nullptr) continue; // it has ended, or its host is lost
    if (newest.at(key.first) != one) {
      starts.stop(key.first, *at, protocol::stop_how::kill, now, out);
      continue;
    }
    places.keep(key.first, *at->host, "it ran there when the root came back");
    out.push_back(host_events::placed(key.first, one.self, *places.find(key.first)));
    at->is_unheard = key.first.kind == role_kind::keeper;
    all.push_back(one);
  }
  found_.clear();
  return all;
}

void end_late(const protocol::start_report& report, placement& places, hosted_actions& out) {
  if (report.role.kind == role_kind::ps_shard && places.find(report.role) == nullptr)
    places.keep(report.role, report.host, "it ran there before");
  out.push_back(to_host{
      report.host, protocol::stop_order{report.boot, report.role, report.self, protocol::stop_how::kill}});
}

void end_found(const protocol::host_joined& joined, const last_stores& last, hosted_starts& starts,
               placement& places) {
  for (const auto& one : joined.running) {
    starts.find({one.role, one.self.incarnation})->stop = protocol::stop_how::kill;
    const bool is_shard = one.role.kind == role_kind::ps_shard;
    if (is_shard || one.role.kind == role_kind::keeper)
      places.note_copy(joined.host, {.shard = protocol::shard_of(one.role),
                                     .opener = is_shard ? one.self.incarnation : dlrun::incarnation{},
                                     .timeline = last.timeline,
                                     .end = step_from(last.version)});
  }
}

} // namespace dlrun::agent
