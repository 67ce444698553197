/// The stores of PS shards in the folders of hosts.
#pragma once

#include "actors/protocol/host_messages.hpp"
#include "tests/simulation/disk.hpp"
#include "tests/simulation/retained.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/what_happened.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace dlrun::simulation {

class host_stores {
public:
  explicit host_stores(const scenario& plan);

  simulated_store& at(ps_shard_id shard, std::uint32_t host) { return stores_.at(index(shard, host)); }
  /// The one that was opened last, wherever it is.
  simulated_store& newest(ps_shard_id shard);
  /// Its timeline and end; nothing where none was ever opened.
  std::optional<std::pair<timeline_id, version_id>> rank(ps_shard_id shard, std::uint32_t host) const;
  /// What the agent of a host tells of its folder.
  std::vector<protocol::held_store> held_at(std::uint32_t host) const;
  /// The host is lost: all is, or of each store what is not synced.
  void lose(std::uint32_t host, bool with_disk, random_source& random, what_happened& happened);

  /// What PS shards left in memory.
  retained_memories& retained() { return retained_; }

  /// None is full any more.
  void empty_disks();

private:
  std::size_t index(ps_shard_id shard, std::uint32_t host) const { return shard.value * hosts_ + host; }
  simulated_store fresh(ps_shard_id shard) const { return {shard, mode_, syncs_each_step_}; }

  std::uint32_t shards_;
  std::uint32_t hosts_;
  protocol::durability mode_;
  bool syncs_each_step_;
  std::vector<simulated_store> stores_; ///< by PS shard, by host
  retained_memories retained_;
};

} // namespace dlrun::simulation
