/// Between the numbers of a PS shard and its store: what is written down, and how it comes back.
#pragma once

#include "actors/common/store_replay.hpp"
#include "actors/ps_shard/epoch_metrics.hpp"
#include "actors/ps_shard/shard_parameters.hpp"
#include "persistence/shard_store.hpp"
#include "transport/frozen_parameters.hpp"

#include <spdlog/logger.h>

namespace dlrun::ps_shard {

/// Where a restore ended.
struct restore_outcome {
  version_id version;
  bool has_previous = false; ///< the version before it is served too (R8)
  std::optional<protocol::training_metrics> metrics;
  protocol::applied_ledger ledger; ///< as of `version`
  std::uint64_t steps_replayed = 0;
  protocol::duration replay_time{};
};

/// Writes `image`, the state at `version`, as a snapshot of `store`. Waits with the commit until
/// `may_commit()` says so (R11: never ahead of the log). Blocks. @returns as snapshot_writer does;
/// interrupted when `may_commit` says no.
result<void> write_snapshot(persistence::shard_store& store, version_id version, timeline_id timeline,
                            copy_on_write_image& image, const common::snapshot_extra& extra,
                            const std::function<bool()>& may_commit);

/// The parameters of the snapshot of `version`, without the optimizer's state, for whoever
/// evaluates them on `timeline`. `shape` is used for what never changes. Blocks; from any thread.
/// @returns as shard_store::open_snapshot() and snapshot_reader do; bad_usage as restore().
result<transport::frozen_parameters_writer> freeze_snapshot(const persistence::shard_store& store,
                                                            const shard_parameters& shape,
                                                            timeline_id timeline, version_id version);

/// What restore() does with a snapshot that is damaged.
enum class damaged_snapshot : std::uint8_t { drop, leave };

/// Makes `parameters` stand at `version`: the best snapshot below it, then the log, so that the
/// version before it is there too; failing that, a snapshot of just that version. When a snapshot
/// is damaged, that is logged, and an older one taken. Publishes under the newest timeline of
/// `history`. Blocks. `drop` is for the thread that appends to the store only.
/// @returns storage_damaged when nothing of what is there leads to `version`; bad_usage when what
/// does was written by another version or for another job: it is left as it is.
result<restore_outcome> restore(persistence::shard_store& store, shard_parameters& parameters,
                                const data::sampler& sampler, const protocol::history& history,
                                version_id version, damaged_snapshot damaged, spdlog::logger& log);

/// The newest version that restore() can be asked for.
version_id newest_restorable(const persistence::shard_store& store);

} // namespace dlrun::ps_shard
