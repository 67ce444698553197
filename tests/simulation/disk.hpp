/// What outlives processes: the disk of a PS shard and the coordinator's journal. What is not
/// synced may be lost in a power cut.
#pragma once

#include "actors/coordinator/fence_book.hpp"
#include "actors/coordinator/store_book.hpp"
#include "actors/coordinator/workforce.hpp"
#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "actors/protocol/durability.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"
#include "tests/simulation/symbolic.hpp"

#include <map>
#include <optional>

namespace dlrun::simulation {

/// State of a PS shard at one version.
struct shard_image {
  value content = 0;
  protocol::applied_ledger ledger;
};

/// Log, snapshots and history of a PS shard. Snapshots and rewinds are synced before they count; of
/// the log what is below `synced` survives a power cut.
class simulated_store {
public:
  simulated_store(ps_shard_id shard, protocol::durability mode, bool syncs_each_step)
      : shard_(shard)
      , mode_(mode)
      , syncs_each_step_(syncs_each_step) {}

  incarnation opened_by{}; ///< refuses older starts
  /// Of what is in it, which comes back with it: the newest start that opened it, and who it is
  /// (R24); 0: not any more what it was.
  incarnation last_opener{};
  std::uint64_t identity = 0;
  bool full = false;

  /// In mode `power` what is found is synced before it is used (R11); returns the newest version
  /// that can be restored.
  version_id open();
  protocol::version_set restorable() const;
  /// `version` must be restorable.
  shard_image restore(version_id version) const;
  /// What the core is told after an opening or a rewind to `version`.
  ps_shard::loaded_standing describe(version_id version) const;

  void append(const ps_shard::append& record, value root);
  void sync(std::uint64_t end) { synced_ = std::max(synced_, std::min(end, appended_)); }
  void add_snapshot(version_id version, const shard_image& image);
  void drop_below(version_id version, std::optional<version_id> kept);
  /// One synced write. `keeps_snapshots`: the mistake of leaving those above.
  void rewind(const protocol::history& history, version_id version, bool keeps_snapshots);
  void truncate(version_id version, bool keeps_snapshots);

  const protocol::history& history() const { return history_; }
  std::uint64_t appended() const { return appended_; }
  std::uint64_t synced() const { return synced_; }
  /// D, as this disk would show it.
  std::uint64_t committed() const;
  const shard_image* snapshot(version_id version) const;
  std::optional<version_id> newest_snapshot() const;

  // faults
  /// Torn: of what is not synced some first part may have reached the disk.
  void cut_power(random_source& random);
  void damage_newest_snapshot();

private:
  struct record {
    ps_shard::append what;
    value root = 0;
  };

  ps_shard_id shard_;
  protocol::durability mode_;
  bool syncs_each_step_;
  protocol::history history_ = protocol::first_history();
  std::map<std::uint64_t, record> log_; ///< by step
  std::uint64_t appended_ = 0;          ///< the log holds steps below
  std::uint64_t synced_ = 0;
  std::map<version_id, shard_image> snapshots_; ///< without version 0
};

/// Every write is synced. Refuses the writes of an older owner (R15), and those of a coordinator
/// that did not write what is there (R41).
struct coordinator_journal {
  incarnation owner{};
  std::uint64_t last_write = 0; ///< its number
  std::map<protocol::role_name, coordinator::journaled_role> roles;
  std::optional<protocol::job_ended> ended;
  std::optional<coordinator::journaled_workers> workers;
  coordinator::store_book::stores stores;
  data_dispatcher::journaled_course course;
  bool fences_are_lost = false;
  bool course_is_lost = false;

  timeline_id timeline() const { return newest_timeline(course.history); }
};

} // namespace dlrun::simulation
