/// A PS shard's store with threads of its own: one appends to the log, one writes snapshots.
#pragma once

#include "actors/common/patience.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/ps_shard/copy_source.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"
#include "actors/ps_shard/step_log.hpp"
#include "actors/ps_shard/store_transfer.hpp"

#include <atomic>
#include <memory>
#include <optional>

namespace dlrun::ps_shard {

/// What the threads of a store tell; called on them.
struct threaded_store_events {
  step_log_events log;
  /// As ordered on that timeline, which may have been left meanwhile.
  std::function<void(timeline_id, version_id)> snapshot_durable;
  /// A snapshot failed; training goes on without it.
  std::function<void(timeline_id, version_id, const error&)> snapshot_failed;
};

/// State of one version, on its way to a snapshot.
struct snapshot_order {
  version_id version;
  timeline_id timeline;
  std::shared_ptr<copy_on_write_image> image; ///< null: of a version that is past; to be made from the log
  std::optional<protocol::training_metrics> metrics;
  protocol::applied_ledger ledger;
};

struct threaded_store_options {
  std::shared_ptr<const common::job_context> job;
  ps_shard_id shard;
  incarnation opener;
  std::shared_ptr<spdlog::logger> log;
  /// How long an opener waits for the process that had the store before to be gone.
  std::chrono::milliseconds patience{5000};
  /// Told by an opener of a full disk; without it that is an error.
  common::full_disk_watcher watcher{};
  /// Null: the operating system's.
  std::shared_ptr<persistence::file_system> files{};
};

/// Thread-safe where not said otherwise. On destruction the write in hand is finished, the rest
/// dropped.
class threaded_store {
public:
  /// Opens the store in the run folder. Blocks. @returns as shard_store::open() does.
  static result<std::unique_ptr<threaded_store>> open(threaded_store_options options);
  ~threaded_store();

  /// What is there, loaded into `parameters` (which the caller must not use meanwhile): the newest
  /// version that can be had, be it from `former`, which an earlier start left in memory (R36;
  /// empty: nothing). Blocks. To be called once, before run().
  result<loaded_standing> restore_newest(shard_parameters& parameters, common::retained_memory former = {});
  /// Metrics of the epoch as of what was restored last.
  const std::optional<protocol::training_metrics>& restored_metrics() const { return metrics_; }

  /// As its opening found it.
  protocol::opened_store opened() const;

  /// From here on events come, and the functions below may be called.
  void run(threaded_store_events events);

  void append(step_to_log step) { log_->append(std::move(step)); }
  /// In version order.
  void take_snapshot(snapshot_order order);
  /// The snapshot of `kept` stays.
  void drop_below(version_id version, std::optional<version_id> kept = std::nullopt);
  /// Reads a snapshot's parameters (freeze_snapshot()); `done` is called on the thread that writes
  /// snapshots. One that is damaged is dropped first, so that the next start of the shard makes it
  /// again or shows that it is gone.
  void freeze(std::shared_ptr<const shard_parameters> shape, timeline_id timeline, version_id version,
              std::function<void(result<transport::frozen_parameters_writer>)> done);
  /// R24: the coordinator knows that it is short of what it had acknowledged.
  void renew_identity();
  /// R16. Drops what waits. `load` is called on the log's thread when history and truncation are
  /// durable, and must see to it that load_after_rewind() is called on the thread that owns the
  /// parameters.
  void rewind(const perform_rewind& order, std::function<void(result<void>)> load);
  result<loaded_standing> load_after_rewind(shard_parameters& parameters, const perform_rewind& order);

  /// For its copy: that piece, which this outlives. Blocks.
  result<copy_source> open_for_copy(const copy_item& item) const { return copy_source::open(*store_, item); }

  protocol::history history() const;
  protocol::store_standing standing() const;
  persistence::store_counters counters() const { return store_->counters(); }
  /// Versions it can go back to, and snapshots there are.
  protocol::version_set restorable() const;
  std::vector<version_id> snapshots() const;
  /// All that a copy of it is to have.
  own_store held() const;
  /// The newest version that is there whatever durability.sync protects against happens.
  version_id newest() const;

private:
  explicit threaded_store(threaded_store_options options)
      : options_(std::move(options)) {}

  loaded_standing standing_at(version_id version) const;
  std::optional<loaded_standing> restore_retained(shard_parameters& parameters,
                                                  common::retained_memory former);
  result<loaded_standing> restore_version(shard_parameters& parameters, version_id version);
  std::map<step_id, norm_partials> newest_partials(version_id version) const;
  result<void> write(const snapshot_order& order);
  result<void> write_from_log(const snapshot_order& order);

  threaded_store_options options_;
  std::unique_ptr<persistence::shard_store> store_;
  std::optional<protocol::training_metrics> metrics_;
  threaded_store_events events_;
  std::atomic<timeline_id> timeline_{}; ///< of the newest rewind: snapshots of those before are void
  std::unique_ptr<step_log> log_;
  std::unique_ptr<common::task_thread> snapshot_thread_; ///< last: its tasks use all of the above
};

} // namespace dlrun::ps_shard
