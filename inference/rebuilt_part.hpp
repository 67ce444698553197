/// A PS shard's part of one version, made from its store in plain memory.
#pragma once

#include "actors/common/store_replay.hpp"
#include "inference/run_stores.hpp"

namespace dlrun::inference {

class rebuilt_part {
public:
  /// All must outlive it.
  rebuilt_part(const persistence::shard_store& store, const training_recipe& recipe,
               const engine::shard_range& range, const engine::block_updates& updates);

  /// From the best base that is whole; as run_stores::load().
  result<void> load(version_id version, std::vector<std::string>& damaged);

  std::span<const float> floats() const { return floats_; } ///< range.size
  /// Of its blocks, 32 bytes each.
  std::string digests() const;

private:
  result<void> load_from(const common::base_version& base, version_id version);
  result<void> load_initial();
  result<void> load_snapshot(version_id version);
  result<void> make_again(step_id step);

  const persistence::shard_store& store_;
  const training_recipe& recipe_;
  engine::shard_range range_;
  const engine::block_updates& updates_;
  protocol::history history_;
  std::vector<float> floats_, state_;
};

} // namespace dlrun::inference
