/// When to take a snapshot, and of which version (rule R17).
#pragma once

#include "actors/data_dispatcher/lost_gradients.hpp"
#include "actors/protocol/durability.hpp"
#include "actors/protocol/time.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlrun::data_dispatcher {

struct snapshot_schedule_config {
  protocol::durability durability = protocol::durability::every_step;
  std::uint64_t steps = 0; ///< N: snapshotted by every shard on its own
  /// What a crash may cost: half of it is what log or recomputation may come to, the rest is for
  /// noticing and starting.
  protocol::duration max_recovery = std::chrono::milliseconds(500);
  /// A log that is cheap to replay is cut after this long, so that it does not fill the disk.
  protocol::duration age_max = std::chrono::seconds(60);
};

/// A version to be named to the shards in `to`; `reason` is empty when it was named before.
struct snapshot_naming {
  version_id version;
  std::vector<ps_shard_id> to;
  std::string reason;
};

/// Pure: names the versions that get a snapshot, one at a time: a version above all applied ones,
/// and the next when every shard has a snapshot of it. If a shard passes a version before it hears
/// of it, another is named, further ahead. Between snapshots lies four times what the last one
/// took, so that a slow disk has time for other work.
class snapshot_schedule {
public:
  explicit snapshot_schedule(snapshot_schedule_config config)
      : config_(config) {}

  /// A new timeline: what was named is void.
  void restart() { named_.reset(); }
  /// All shards have reported, on one timeline. `newest_common`: the newest version of which all
  /// have a snapshot, or 0.
  snapshot_naming decide(const shard_statuses& shards, version_id newest_common, protocol::time_point now);

private:
  struct naming {
    version_id version;
    std::optional<protocol::time_point> passed; ///< since when all shards are past it
  };

  void follow_up(const shard_statuses& shards, version_id newest_common, protocol::time_point now);
  std::string why_now(const shard_statuses& shards, version_id highest, protocol::time_point now) const;

  snapshot_schedule_config config_;
  std::optional<naming> named_;
  std::uint64_t lead_ = 2; ///< how far above the highest applied version the next is named
  version_id newest_common_{};
  std::optional<protocol::time_point> since_; ///< the age of the newest common snapshot counts from here
  protocol::duration cost_{}; ///< of the last one, from passing the version to having it everywhere
};

} // namespace dlrun::data_dispatcher
