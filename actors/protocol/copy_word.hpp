/// What an agent hears of the copies of PS shards' stores, in heartbeats.
#pragma once

#include <cstdint>
#include <dlrun/ids.hpp>

namespace dlrun::protocol {

/// What a PS shard says of the copy of its store; and a keeper, once it has opened that: in
/// `keeper` to `floor`, what it holds.
struct copy_word {
  bool is_known = false;        ///< it knows whom it counts
  dlrun::incarnation counted{}; ///< it commits nothing that this start of the keeper lacks; 0: there is none
  bool is_silent = false;       ///< that has said nothing for too long
  /// What the newest copy that it has heard of holds.
  dlrun::incarnation keeper{}; ///< 0: it has heard of none
  timeline_id timeline{};
  version_id end{};
  version_id floor{};
  bool is_moving = false;     ///< it has heard that it is to move, and ends by itself (R37)
  std::uint64_t progress = 0; ///< another number: it trains, or what it waits for before that gets on

  bool operator==(const copy_word&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_word& x) {
    return f(x.is_known, x.counted, x.is_silent, x.keeper, x.timeline, x.end, x.floor, x.is_moving,
             x.progress);
  }
};

} // namespace dlrun::protocol
