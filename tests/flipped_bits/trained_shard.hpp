/// A PS shard that has trained, went back once and dropped what was old, its store, and copies of
/// it as they were on the way.
#pragma once

#include "actors/common/job_context.hpp"
#include "persistence/shard_store.hpp"
#include "tests/actors/ps_shard/shard_fixture.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::flipped_bits {

/// Records have gradients of 5,200 bytes: in a segment with the first, in RocksDB with the other.
inline constexpr std::size_t inline_bytes_max[] = {4096, 65536};

/// A copy that is closed, and was whole at that moment.
struct kept_copy {
  std::filesystem::path folder; ///< empty: there is none yet
  timeline_id timeline{};
  version_id end{};
};

class trained_shard {
public:
  /// In `folder`.
  explicit trained_shard(const std::filesystem::path& folder);

  const persistence::shard_store& store() const { return *store_; }
  const std::vector<kept_copy>& copies() const { return copies_; }
  /// The job, as it would run in that folder.
  std::shared_ptr<const common::job_context> job_in(const std::filesystem::path& run_dir) const;
  /// SHA-256 of all blocks of that version as it was trained; "" when it was not.
  std::string digests_of(timeline_id timeline, version_id version) const;

private:
  void train(int steps);
  void take_snapshot();
  void go_back(version_id to);
  void keep_copy();

  std::filesystem::path folder_;
  std::shared_ptr<const common::job_context> job_;
  std::unique_ptr<persistence::shard_store> store_;
  std::unique_ptr<test::training_shard> live_;
  timeline_id timeline_{};
  std::vector<protocol::parked_slot> parked_;
  std::map<std::pair<timeline_id, version_id>, std::string> digests_;
  std::vector<kept_copy> copies_;
};

} // namespace dlrun::flipped_bits
