/// How a PS shard gets ready to be on another host next (rule R37).
#pragma once

#include "actors/ps_shard/step_pipeline.hpp"

#include <memory>
#include <optional>

namespace dlrun::ps_shard {

/// Pure: says when a PS shard that is to move begins no step any more, which snapshot it needs, and
/// when it ends. With a log, or nothing kept, it ends at once. With `snapshots` it trains on until
/// those that were begun before are committed, so that it has to wait for one or two at most. Then
/// it stands still, and ends when its version is committed and nobody needs the one before.
class shard_move {
public:
  explicit shard_move(std::shared_ptr<const ps_shard_core_config> config)
      : config_(std::move(config)) {}

  /// The agent's word, again and again. One that is not to move any more goes on at once.
  void hear(bool is_wanted, step_pipeline& steps, ps_shard_actions& out);
  /// To be called when a gradient, a step or a snapshot may have brought it further.
  void advance(step_pipeline& steps, ps_shard_actions& out);
  /// That snapshot could not be written. If it waits for that one it ends all the same: else it
  /// would stand for as long as its disk is full.
  void on_snapshot_failed(version_id version, const step_pipeline& steps, ps_shard_actions& out) const;

  /// It is to end, and will by itself, or stay.
  bool is_wanted() const { return is_wanted_; }
  /// It begins no step.
  bool stands_still() const { return stands_still_; }

private:
  std::shared_ptr<const ps_shard_core_config> config_;
  bool is_wanted_ = false;
  /// The newest snapshot that was in work when it was told: it trains on until that is committed.
  std::optional<version_id> begun_before_;
  bool stands_still_ = false;
};

} // namespace dlrun::ps_shard
