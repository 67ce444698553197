/// The digests of the last version, as they come from the PS shards.
#pragma once

#include "actors/coordinator/coordinator_actions.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::coordinator {

/// Pure: collects the SHA-256 of every parameter block of one version. PS shards send the digests
/// of their blocks in parts.
class digest_collector {
public:
  /// Parameter blocks [first, second) of each shard; together all of the model.
  explicit digest_collector(std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks_of_shard);

  /// Those of `version` on `timeline` are wanted; what has come is forgotten.
  void begin(timeline_id timeline, version_id version);
  /// What each shard is to be asked that has not told all.
  coordinator_actions requests() const;
  /// What this one is to be asked; nothing when it has told all.
  std::optional<request_digests> request(ps_shard_id shard) const;
  /// @returns whether that is what the shard is to be asked.
  bool take(ps_shard_id shard, const protocol::digest_reply& reply);
  bool is_complete() const;
  /// All in canonical order, 32 bytes each; empty while one is missing.
  std::string digests() const { return is_complete() ? digests_ : std::string{}; }

private:
  static constexpr std::size_t digest_bytes = 32; ///< SHA-256

  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks_of_shard_;
  timeline_id timeline_{};
  version_id version_{};
  std::map<ps_shard_id, std::uint32_t> next_; ///< block to ask a shard for; empty before begin()
  std::string digests_;
};

} // namespace dlrun::coordinator
