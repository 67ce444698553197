/// What the PS shards of a run have on disk, read without them: for tools, while nobody trains.
#pragma once

#include "actors/common/job_context.hpp"
#include "persistence/shard_store.hpp"

#include <filesystem>
#include <memory>
#include <spdlog/logger.h>
#include <string>
#include <vector>

namespace dlrun::ps_shard {

/// One version of a model, all shards together.
struct stored_version {
  std::vector<float> parameters; ///< the flat vector: parameters and buffers; metrics and padding zero
  std::string block_digests;     ///< of all blocks, 32 bytes each: what parameters_sha256 is the SHA-256 of
};

/// The stores of all PS shards, opened for a look: nothing in them is changed.
class stored_run {
public:
  /// Opens the stores in `run_dir`. @returns in_use while a PS shard has one open, bad_usage when one is
  /// missing (nothing was kept), storage_damaged.
  static result<stored_run> open(const std::filesystem::path& run_dir, std::uint32_t ps_shards);

  /// Versions that all shards lead to, on one history of the training; version 0 always.
  const protocol::version_set& versions() const { return versions_; }
  /// Does every shard have the version as a whole, so that none of its steps has to be made again?
  bool is_whole(version_id version) const;
  /// What was torn or damaged, one line each.
  std::vector<std::string> damaged() const;

  /// Loads a version that is_whole(). `job` is asked for its model and, for version 0, its weights file; its
  /// number of records need not be right.
  result<stored_version> load_whole(const std::shared_ptr<const common::job_context>& job,
                                    version_id version) const;
  /// Loads any of versions(), making steps again from the log. `job` as it was trained.
  result<stored_version> load(const std::shared_ptr<const common::job_context>& job, version_id version,
                              spdlog::logger& log) const;

private:
  explicit stored_run(std::vector<std::unique_ptr<persistence::shard_store>> stores);

  std::vector<std::unique_ptr<persistence::shard_store>> stores_; ///< by shard
  protocol::version_set versions_;
};

} // namespace dlrun::ps_shard
