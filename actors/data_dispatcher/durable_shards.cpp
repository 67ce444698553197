#include "actors/data_dispatcher/durable_shards.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <optional>

namespace dlrun::data_dispatcher {

using protocol::is_planted;
using protocol::planted_bug;

void durable_shards::note(const protocol::shard_status& status) {
  statuses_[status.shard] = status;
  if (is_planted(bug_, planted_bug::untagged_status))
    ever_reported_[status.shard].insert(status.durable.snapshots.begin(), status.durable.snapshots.end());
}

bool durable_shards::all_on(timeline_id timeline) const {
  return all_reported() && std::all_of(statuses_.begin(), statuses_.end(),
                                       [&](const auto& entry) { return entry.second.timeline == timeline; });
}

protocol::version_set durable_shards::restorable(const protocol::history& history) const {
  DLRUN_CHECK(all_reported(), "what all can restore follows from what all have said");
  std::optional<protocol::version_set> all;
  for (const auto& [id, shard] : statuses_) {
    auto good = shard.durable.restorable;
    insert(good, {{0}, {0}});
    if (const auto branch = branched_since(history, shard.timeline)) good = up_to(good, *branch);
    all = all ? common(*all, good) : good;
  }
  return *all;
}

std::vector<version_id> durable_shards::snapshots() const {
  std::map<version_id, std::size_t> held;
  for (const auto& [id, shard] : statuses_)
    for (const auto version : shard.durable.snapshots) ++held[version];
  if (is_planted(bug_, planted_bug::untagged_status)) {
    held.clear();
    for (const auto& [id, versions] : ever_reported_)
      for (const auto version : versions) ++held[version];
  }
  std::vector<version_id> all{{0}};
  for (const auto& [version, shards] : held)
    if (shards == ps_shards_ && version.value > 0) all.push_back(version);
  return all;
}

} // namespace dlrun::data_dispatcher
