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

/// Most of what the owner may keep with a step beside its gradient: it rests in RocksDB, which
/// large values make slow.
inline constexpr std::size_t extra_bytes_max = std::size_t{48} << 10;

/// One step as it is logged: everything that replay needs, so that replay asks nobody (rule
/// R12).
struct log_record {
  step_id step;
  /// The timeline that the step was computed in; its spec replays it (R11).
  timeline_id timeline;
  /// What the owner keeps with the step beside its gradient (coupled quantities, ledger), in its
  /// own encoding; opaque here, at most extra_bytes_max. Rests in RocksDB, so read_head() gives it
  /// without the payload. Borrowed for the duration of the call.
  std::string_view extra;
  /// The root gradient of the step. Borrowed for the duration of the call.
  std::span<const std::byte> payload;
  /// Of the payload, where the caller knows it already, and what it is of was compared with it.
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

/// A record as it is read back. Owns its bytes, whose checksum was right.
struct stored_record {
  record_head head;
  std::vector<std::byte> payload;
};

/// What is left out of a step (R18).
struct parked_entry {
  step_id step;
  slot_id slot;
  std::uint32_t record_after = 0; ///< place of the one record that is, plus 1; 0: the whole slot

  friend bool operator==(const parked_entry&, const parked_entry&) = default;
};

/// One timeline of the training: it left its predecessor at version `branch` (R16).
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
  /// What the writer was given, without metadata and framing.
  std::uint64_t payload_bytes = 0;
  /// What it takes on disk.
  std::uint64_t file_bytes = 0;

  friend bool operator==(const snapshot_info&, const snapshot_info&) = default;
};

} // namespace dlrun::persistence
