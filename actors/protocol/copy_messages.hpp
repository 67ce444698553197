/// What a PS shard and the keeper of its copy on another host speak of (R21 to R23). The rules of
/// messages.hpp hold.
#pragma once

#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/timeline.hpp"

#include <string>
#include <vector>

namespace dlrun::protocol {

/// What a PS shard sends to the keeper. A stream is numbered without a gap, and taken in order; a
/// higher one replaces it. What is lost is sent again in the next stream, from where the copy
/// stands then.
enum class copy_kind : std::uint8_t {
  hello,    ///< where do you stand? Begins a stream
  record,   ///< of the step that reads this version
  snapshot, ///< of this version
  rewind,   ///< go back to it, on the next timeline
  floor     ///< drop what is below it
};

/// Keeper -> PS shard, when something of a stream has been done, and now and then within it: what
/// the copy holds, as durable as durability.sync says.
struct copy_standing {
  dlrun::incarnation incarnation{}; ///< start of the keeper
  dlrun::incarnation shard{};       ///< start of the PS shard that it answers
  std::uint64_t stream = 0;
  std::uint64_t taken = 0; ///< parts of the stream
  timeline_id timeline{};
  version_id end{}; ///< the log goes on from here
  version_id floor{};
  version_set restorable{};
  std::vector<version_id> snapshots{}; ///< ascending
  std::string failure{};               ///< why nothing more of the stream is taken; "" when it is

  bool operator==(const copy_standing&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_standing& x) {
    return f(x.incarnation, x.shard, x.stream, x.taken, x.timeline, x.end, x.floor, x.restorable, x.snapshots,
             x.failure);
  }
};

} // namespace dlrun::protocol
