/// The stores of all PS shards of a run, read without them: while nobody trains.
#pragma once

#include "actors/protocol/timeline.hpp"
#include "data/sampler.hpp"
#include "engine/model.hpp"
#include "persistence/shard_store.hpp"
#include "proto/job_spec.pb.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::inference {

/// How the numbers in the stores were made.
struct training_recipe {
  std::shared_ptr<const engine::model> model; ///< that was trained: with the metrics of then
  /// As each revision of the specification has it, oldest first: what makes version 0, and the
  /// updates.
  std::vector<spec::TrainSpec> revisions;
  /// Which records were in which step; only needed to make steps again.
  std::optional<data::sampler> sampler{};
};

/// One version of a model, all shards together.
struct rebuilt_version {
  std::vector<float> parameters; ///< the flat vector: parameters and buffers; metrics and padding zero
  std::string block_digests;     ///< of all blocks, 32 bytes each: what parameters_sha256 is the SHA-256 of
};

/// The stores of all PS shards, opened for a look: nothing in them is changed, and they may lie
/// where nothing can be written.
class run_stores {
public:
  /// Opens the stores in `run_dir`. @returns in_use while a PS shard has one open, bad_usage when
  /// one is missing (nothing was kept), storage_damaged, system.
  static result<run_stores> open(const std::filesystem::path& run_dir, std::uint32_t ps_shards);

  /// Versions that all shards lead to, on one history of the training; version 0 always.
  const protocol::version_set& versions() const { return versions_; }
  /// Does every shard have the version as a whole, so that none of its steps has to be made again?
  bool is_whole(version_id version) const;
  /// What was torn or damaged, one line each.
  std::vector<std::string> damaged() const;

  /// Loads one of versions(): without `recipe.sampler` only one that is_whole(), with it making
  /// steps again from the log where that is needed. What is damaged and done without is added to
  /// `damaged`.
  /// @returns storage_damaged, bad_usage for stores of another model, bad_data for a
  /// train.init_from that is not that of the start.
  result<rebuilt_version> load(const training_recipe& recipe, version_id version,
                               std::vector<std::string>& damaged) const;

private:
  explicit run_stores(std::vector<std::unique_ptr<persistence::shard_store>> stores);

  std::vector<std::unique_ptr<persistence::shard_store>> stores_; ///< by shard
  protocol::version_set versions_;
};

} // namespace dlrun::inference
