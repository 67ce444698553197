/// What a simulated PS shard writes to its disk, and how long that takes.
#pragma once

#include "actors/ps_shard/ps_shard_actions.hpp"
#include "tests/simulation/disk.hpp"

#include <deque>
#include <functional>
#include <set>

namespace dlrun::simulation {

class process;
class world;

/// The log in step order, snapshots in version order and never ahead of the log, rewinds (R11,
/// R16).
class shard_writer {
public:
  /// The shard's core: how far it knows the log to be committed, and what it is told.
  struct core_side {
    std::function<version_id()> known_committed;
    std::function<void(version_id)> committed;
    std::function<void(version_id)> snapshot_durable;
    std::function<void(const ps_shard::perform_rewind&)> rewound;
  };

  shard_writer(world& where, process& of, ps_shard_id shard, core_side core);

  simulated_store& disk() const;
  /// The disk refuses the writes of an older start (R4): that is its end.
  bool owns_disk();
  /// Happens unless a rewind came first.
  void after_on_this_timeline(double milliseconds_max, std::function<void()> what);

  void append(const ps_shard::append& what, value root);
  void take_snapshot(version_id version, const shard_image& image);
  void drop_below(const ps_shard::drop_below& order);
  /// What was in work is dropped at once, the marker takes its time.
  void rewind(const ps_shard::perform_rewind& order);

private:
  struct pending_append {
    ps_shard::append what;
    value root = 0;
  };

  void write_log();
  void append_group(std::size_t count);
  void sync_log(std::uint64_t end);
  void write_snapshot(version_id version, const shard_image& image);
  bool may_write_snapshot(version_id version) const;
  void finish_rewind(const ps_shard::perform_rewind& order);

  world& world_;
  process& process_;
  ps_shard_id shard_;
  core_side core_;
  std::deque<pending_append> appends_;
  bool appending_ = false;
  std::set<version_id> snapshots_in_work_;
  std::uint64_t rewinds_ = 0;
};

} // namespace dlrun::simulation
