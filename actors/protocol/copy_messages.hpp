/// Between a PS shard and the keeper that holds a copy of its store on another host (R21 to R23).
/// The rules of messages.hpp hold, but for one: parts carry what a store holds, in pieces.
#pragma once

#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/timeline.hpp"

#include <string>
#include <vector>

namespace dlrun::protocol {

/// What a part is of.
enum class copy_kind : std::uint8_t {
  hello,    ///< where do you stand? Begins a stream
  record,   ///< of the step that reads this version
  snapshot, ///< of this version
  rewind,   ///< go back to it, on the next timeline; `history` has how
  floor     ///< drop what is below it
};

/// PS shard -> keeper. A stream is numbered without a gap, and taken in order; a higher one
/// replaces it. What is lost is sent again in the next stream, from where the copy stands then.
struct copy_part {
  role_name role{}; ///< the PS shard, which the connection confirms
  dlrun::incarnation incarnation{};
  dlrun::incarnation keeper{}; ///< the start that it is for
  std::uint64_t stream = 0;
  std::uint64_t number = 0; ///< of the part in its stream
  copy_kind kind = copy_kind::hello;
  timeline_id timeline{};
  version_id version{};
  std::uint64_t content_bytes = 0; ///< gradient of a record, parameters of a snapshot
  std::uint64_t total_bytes = 0;   ///< that, and what is kept with it behind it
  std::uint64_t offset = 0;        ///< of `bytes` in that
  std::uint32_t crc32c = 0;        ///< of `bytes`
  std::string bytes{};
  bool has_kept = false; ///< floor: the snapshot of `kept` stays
  version_id kept{};
  protocol::history history{}; ///< rewind

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_part& x) {
    return f(x.role, x.incarnation, x.keeper, x.stream, x.number, x.kind, x.timeline, x.version,
             x.content_bytes, x.total_bytes, x.offset, x.crc32c, x.bytes, x.has_kept, x.kept, x.history);
  }
};
/// Half of what a message has room for.
inline constexpr std::size_t copy_part_bytes_max = std::size_t{32} << 10;

/// Keeper -> PS shard, when something of a stream has been done, and now and then within it: what
/// the copy holds, as durable as durability.sync says.
struct copy_standing {
  role_name role{}; ///< the keeper, which the connection confirms
  dlrun::incarnation incarnation{};
  dlrun::incarnation shard{}; ///< start of the PS shard that it answers
  std::uint64_t stream = 0;
  std::uint64_t taken = 0; ///< parts of the stream
  timeline_id timeline{};
  version_id end{}; ///< the log goes on from here
  version_id floor{};
  version_set restorable{};
  std::vector<version_id> snapshots{}; ///< ascending
  std::uint64_t record_bytes = 0;      ///< of the record in hand, which is not whole yet
  std::uint64_t snapshot_bytes = 0;    ///< the same of the snapshot
  std::string failure{};               ///< why nothing more of the stream is taken; "" when it is

  bool operator==(const copy_standing&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_standing& x) {
    return f(x.role, x.incarnation, x.shard, x.stream, x.taken, x.timeline, x.end, x.floor, x.restorable,
             x.snapshots, x.record_bytes, x.snapshot_bytes, x.failure);
  }
};

} // namespace dlrun::protocol
