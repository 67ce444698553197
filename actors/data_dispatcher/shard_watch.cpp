#include "actors/data_dispatcher/shard_watch.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::data_dispatcher {
namespace {

/// By which the newer of two statuses of a shard is told.
auto age(const protocol::shard_status& status) { return std::pair(status.self.incarnation, status.sequence); }

} // namespace

bool shard_watch::on_status(const protocol::shard_status& status, data_dispatcher_actions& out) {
  if (status.shard.value >= ps_shards_) return false;
  const auto start = starts_.find(status.shard);
  if (start != starts_.end() && status.self.incarnation < start->second.incarnation) return false;
  const auto [known, first_time] = statuses_.try_emplace(status.shard, status);
  if (!first_time && age(status) <= age(known->second)) return false;
  known->second = status;
  report_resumed(status, out);
  for (const auto& what : status.contributions) {
    auto& newest = contributed_[what.worker];
    if (newest >= what.incarnation) continue;
    newest = what.incarnation;
    out.emplace_back(to_coordinator{protocol::worker_contributed{what}});
  }
  return true;
}

void shard_watch::report_resumed(const protocol::shard_status& status, data_dispatcher_actions& out) {
  auto& start = starts_[status.shard];
  if (start.incarnation < status.self.incarnation) start = {status.self.incarnation};
  if (!start.first_heard || status.applied < *start.first_heard) start.first_heard = status.applied;
  if (start.resumed || status.applied <= *start.first_heard) return;
  start.resumed = true;
  out.emplace_back(
      to_coordinator{protocol::ps_shard_resumed{status.shard, status.self.incarnation, status.applied}});
}

bool shard_watch::on_started(ps_shard_id shard, incarnation incarnation) {
  if (shard.value >= ps_shards_ || starts_[shard].incarnation >= incarnation) return false;
  starts_[shard] = {incarnation};
  return true;
}

bool shard_watch::on_lost(ps_shard_id shard, incarnation incarnation) {
  if (starts_[shard].incarnation > incarnation) return false;
  starts_[shard] = {{incarnation.value + 1}}; // what comes next is larger
  return true;
}

bool shard_watch::is_gone(ps_shard_id shard) const {
  const auto start = starts_.find(shard);
  const auto heard = statuses_.find(shard);
  return start != starts_.end() && heard != statuses_.end() &&
         start->second.incarnation > heard->second.self.incarnation;
}

template <class Condition>
bool shard_watch::all(Condition condition) const {
  return has_heard_all() && std::all_of(statuses_.begin(), statuses_.end(),
                                        [&](const auto& one) { return condition(one.second); });
}

bool shard_watch::all_on(timeline_id timeline) const {
  return all([&](const auto& status) { return status.timeline == timeline; });
}

bool shard_watch::all_have(std::uint64_t revision) const {
  return all([&](const auto& status) {
    const auto& history = status.durable.history;
    return !history.empty() && history.back().revision >= revision;
  });
}

bool shard_watch::all_committed(version_id version) const {
  return !statuses_.empty() && all([&, first = &statuses_.begin()->second](const auto& status) {
    return status.timeline == first->timeline && status.applied == version && status.committed == version;
  });
}

} // namespace dlrun::data_dispatcher
