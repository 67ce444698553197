#include "tests/simulation/host_stores.hpp"

namespace dlrun::simulation {

host_stores::host_stores(const scenario& plan)
    : shards_(plan.job.ps_shards)
    , hosts_(plan.hosts.count)
    , mode_(plan.durability)
    , syncs_each_step_(plan.syncs_each_step) {
  for (std::uint32_t shard = 0; shard < shards_; ++shard)
    for (std::uint32_t host = 0; host < hosts_; ++host) stores_.push_back(fresh({shard}));
}

simulated_store& host_stores::newest(ps_shard_id shard) {
  auto* found = &at(shard, 0);
  for (std::uint32_t host = 1; host < hosts_; ++host)
    if (auto& other = at(shard, host); other.opened_by > found->opened_by) found = &other;
  return *found;
}

std::optional<std::pair<timeline_id, version_id>> host_stores::rank(ps_shard_id shard,
                                                                    std::uint32_t host) const {
  const auto& store = stores_.at(index(shard, host));
  if (store.opened_by == incarnation{}) return std::nullopt;
  return std::pair{newest_timeline(store.history()), store.restorable().back().last};
}

std::vector<protocol::held_store> host_stores::held_at(std::uint32_t host) const {
  std::vector<protocol::held_store> all;
  for (ps_shard_id shard{0}; shard.value < shards_; ++shard.value)
    if (const auto found = rank(shard, host))
      all.push_back({shard, stores_.at(index(shard, host)).opened_by, found->first, {found->second.value}});
  return all;
}

void host_stores::empty_disks() {
  for (auto& store : stores_) store.full = false;
}

void host_stores::lose(std::uint32_t host, bool with_disk, random_source& random, what_happened& happened) {
  for (ps_shard_id shard{0}; shard.value < shards_; ++shard.value) {
    auto& store = at(shard, host);
    if (store.opened_by == incarnation{}) continue;
    happened.ps_shard_lost = true;
    if (with_disk) {
      if (&store == &newest(shard)) happened.disk_lost = true;
      store = fresh(shard);
      continue;
    }
    store.cut_power(random);
    if (mode_ == protocol::durability::every_step && !syncs_each_step_)
      happened.lossy_power_cut = true; // `process` does not promise power cuts
  }
}

} // namespace dlrun::simulation
