/// A PS shard's part of one version, made from its store in plain memory.
#pragma once

#include "actors/common/stored_records.hpp"
#include "inference/stored_run.hpp"

namespace dlrun::inference {

class stored_part {
public:
  /// All must outlive it.
  stored_part(const persistence::shard_store& store, const training_recipe& recipe,
              const engine::shard_range& range, const engine::block_updates& updates);

  /// From the best base that is whole; as stored_run::load().
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
