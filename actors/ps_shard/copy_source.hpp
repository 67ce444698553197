/// Reads a record or a snapshot of the own store as the bytes that its copy is sent.
#pragma once

#include "actors/ps_shard/copy_stream.hpp"
#include "persistence/shard_store.hpp"

#include <optional>
#include <string>

namespace dlrun::ps_shard {

/// Gives them in order: the content (gradient, parameters and optimizer state), then what is kept
/// with it. Both are read as they are asked for, and verified before the last byte of the content
/// is given. Blocks. One thread at a time; `store` outlives it.
class copy_source {
public:
  /// Bytes that were put where the caller wanted them.
  struct given {
    std::size_t bytes = 0;
    std::uint32_t crc32c = 0;
    std::uint32_t piece_crc32c = 0; ///< protocol::piece_checksum() of all, with the last ones
  };

  static result<copy_source> open(const persistence::shard_store& store, const copy_item& item);

  std::uint64_t content_bytes() const { return content_bytes_; }
  std::uint64_t total_bytes() const { return content_bytes_ + extra_.size(); }
  bool is_over() const { return given_ == total_bytes(); }
  /// Fills `into` with the next ones; less only at the end. @returns storage_damaged when they are
  /// not what was written.
  result<given> read(std::span<std::byte> into);

private:
  result<std::uint32_t> read_content(std::span<std::byte> into);
  result<std::uint32_t> read_record(std::span<std::byte> into);
  result<std::uint32_t> read_snapshot(std::span<std::byte> into);
  void begin_checksum(protocol::copy_kind kind, version_id version);

  std::uint64_t content_bytes_ = 0;
  std::uint64_t given_ = 0;
  std::uint32_t content_crc32c_ = 0; ///< of what was read of it
  std::uint32_t begin_crc32c_ = 0;   ///< of what the piece is, as its store has it
  std::uint32_t extra_crc32c_ = 0;
  std::optional<persistence::payload_reader> record_{};
  std::optional<persistence::snapshot_reader> snapshot_{};
  std::string extra_{};
};

} // namespace dlrun::ps_shard
