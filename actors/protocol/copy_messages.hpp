/// Between a PS shard and the keeper that holds a copy of its store on another host (R21 to R23).
/// What a store holds travels over the tensor channel; a message names it. Both messages are sealed
/// (field_checksum.hpp), and nothing is concluded from one that is not what was sealed.
#pragma once

#include "actors/protocol/endpoint.hpp"
#include "actors/protocol/field_checksum.hpp"
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
/// replaces it. What is lost is sent again in the next stream, from where the copy stands then. The
/// bytes of a part are fetched, and lie there until the part is taken or its stream is over.
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
  std::uint64_t offset = 0;        ///< of this part's bytes in that
  std::uint64_t bytes = 0;         ///< how many they are
  std::uint32_t crc32c = 0;        ///< of them
  std::uint32_t piece_crc32c = 0;  ///< piece_checksum() of the record or snapshot; with its last part
  tensor_location where{};         ///< they are the first ones there
  bool has_kept = false;           ///< floor: the snapshot of `kept` stays
  version_id kept{};
  protocol::history history{}; ///< rewind
  std::uint32_t fields_crc32c = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_part& x) {
    return f(x.role, x.incarnation, x.keeper, x.stream, x.number, x.kind, x.timeline, x.version,
             x.content_bytes, x.total_bytes, x.offset, x.bytes, x.crc32c, x.piece_crc32c, x.where, x.has_kept,
             x.kept, x.history, x.fields_crc32c);
  }
};
/// Begins a checksum that goes with a record or a snapshot from store to store: of what it is, and
/// of how many bytes, to be extended by these, content first. So right bytes in the wrong place, or
/// put together wrongly, are noticed where the whole is written.
inline std::uint32_t piece_checksum(copy_kind kind, version_id version, std::uint64_t content_bytes,
                                    std::uint64_t total_bytes) {
  field_checksum sum;
  sum(kind, version, content_bytes, total_bytes);
  return sum.value();
}

/// Smaller: more messages. Larger: more memory at both ends, and a slower link is taken for one
/// that does not get on.
inline constexpr std::size_t copy_part_bytes_max = std::size_t{1} << 20;
/// Whose bytes may be on the way at a time, of records and of the snapshot that goes beside them.
inline constexpr std::size_t copy_record_parts_max = 6;
inline constexpr std::size_t copy_snapshot_parts_max = 2;

/// Keeper -> PS shard, when a part has been done: what the copy holds, as durable as
/// durability.sync says.
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
  std::uint32_t fields_crc32c = 0;

  bool operator==(const copy_standing&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_standing& x) {
    return f(x.role, x.incarnation, x.shard, x.stream, x.taken, x.timeline, x.end, x.floor, x.restorable,
             x.snapshots, x.record_bytes, x.snapshot_bytes, x.failure, x.fields_crc32c);
  }
};

} // namespace dlrun::protocol
