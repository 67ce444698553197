/// What the store of a PS shard holds: records, histories, snapshots, and ranges of versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dlrun/ids.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlrun::persistence {

/// The most bytes that the owner may store with a step beside its gradient: RocksDB holds them, and
/// large values make it slow.
inline constexpr std::size_t extra_bytes_max = std::size_t{48} << 10;

/// One step to be logged: everything that a replay needs, so that it asks no other process (R12).
struct log_record {
  step_id step;
  /// The timeline on which the step was computed; its specification replays the step (R11).
  timeline_id timeline;
  /// What the owner stores with the step beside its gradient (coupled quantities, ledger), in its
  /// own encoding, at most extra_bytes_max bytes. RocksDB holds it, so read_head() gives it without
  /// the payload. Borrowed for the duration of the call.
  std::string_view extra;
  /// The root gradient of the step. Borrowed for the duration of the call.
  std::span<const std::byte> payload;
  /// CRC32C of the payload, if the caller knows it and has compared the payload with it.
  std::optional<std::uint32_t> payload_crc32c{};
};

/// A record without its payload.
struct record_head {
  step_id step;
  timeline_id timeline;
  std::string extra;
  std::uint64_t payload_bytes = 0;

  friend bool operator==(const record_head&, const record_head&) = default;
};

/// A record that was read back. Owns its bytes, whose checksum was right.
struct stored_record {
  record_head head;
  std::vector<std::byte> payload;
};

/// A slot, or one record of it, that is left out of a step (R18).
struct parked_entry {
  step_id step;
  slot_id slot;
  std::uint32_t record_after = 0; ///< place of the record that is left out, plus 1; 0: the whole slot

  friend bool operator==(const parked_entry&, const parked_entry&) = default;
};

/// One timeline of the training: it left the timeline before it at version `branch` (R16).
struct history_entry {
  timeline_id timeline;
  version_id branch;
  std::uint64_t spec_revision = 0;
  std::vector<parked_entry> parked;

  friend bool operator==(const history_entry&, const history_entry&) = default;
};

struct snapshot_info {
  version_id version;
  timeline_id timeline;
  /// Bytes that the writer was given, without metadata and framing.
  std::uint64_t payload_bytes = 0;
  /// Bytes on disk.
  std::uint64_t file_bytes = 0;

  friend bool operator==(const snapshot_info&, const snapshot_info&) = default;
};

} // namespace dlrun::persistence
