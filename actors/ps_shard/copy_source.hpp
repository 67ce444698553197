/// Reads a record or a snapshot of the own store as the bytes that its copy is sent.
#pragma once

#include "actors/ps_shard/copy_stream.hpp"
#include "persistence/shard_store.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::ps_shard {

/// Gives them in order: the content (gradient, parameters and optimizer state), then what is kept
/// with it. A record is read whole, a snapshot as it is asked for; both are verified on the way.
/// Blocks. One thread at a time; `store` outlives it.
class copy_source {
public:
  static result<copy_source> open(const persistence::shard_store& store, const copy_item& item);

  std::uint64_t content_bytes() const { return content_bytes_; }
  std::uint64_t total_bytes() const { return content_bytes_ + extra_.size(); }
  /// The next ones: at most `count`, less only at the end.
  result<std::string> read(std::size_t count);

private:
  std::uint64_t content_bytes_ = 0;
  std::uint64_t given_ = 0;
  std::vector<std::byte> record_{};
  std::optional<persistence::snapshot_reader> snapshot_{};
  std::string extra_{};
};

} // namespace dlrun::ps_shard
