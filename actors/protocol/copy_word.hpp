/// What an agent hears of the copies of PS shards' stores, in heartbeats.
#pragma once

#include <cstdint>
#include <dlrun/ids.hpp>
#include <vector>

namespace dlrun::protocol {

/// What a copy takes, as its PS shard measured it over the last steps.
struct copy_figures {
  std::uint64_t steps = 0; ///< that were measured; 0: none yet
  std::uint64_t step_us = 0;
  std::uint64_t bytes_per_step = 0;
  std::uint64_t bytes_per_second = 0; ///< while some of it was on its way
  std::uint32_t busy_permille = 0;    ///< of the time: some of it was on its way
  std::uint32_t waited_permille = 0;  ///< of the time: the next version lacked nothing but the copy
  bool is_slow = false;               ///< by that

  bool operator==(const copy_figures&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_figures& x) {
    return f(x.steps, x.step_us, x.bytes_per_step, x.bytes_per_second, x.busy_permille, x.waited_permille,
             x.is_slow);
  }
};

/// What a PS shard says of one copy of its store; and a keeper, once it has opened that: in
/// `keeper` to `floor`, what it holds.
struct copy_word {
  bool is_known = false;        ///< it knows whom it counts
  dlrun::incarnation counted{}; ///< it commits nothing that this start of the keeper lacks; 0: there is none
  bool is_silent = false;       ///< that has said nothing for too long
  /// What the newest start of the keeper that it has heard of holds.
  dlrun::incarnation keeper{}; ///< 0: it has heard of none
  timeline_id timeline{};
  version_id end{};
  version_id floor{};
  std::uint64_t behind = 0; ///< of a PS shard, as is the rest: versions that it has made and `keeper` lacks
  copy_figures cost{};

  bool operator==(const copy_word&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_word& x) {
    return f(x.is_known, x.counted, x.is_silent, x.keeper, x.timeline, x.end, x.floor, x.behind, x.cost);
  }
};

/// What a PS shard says of all copies of its store; of a keeper, of the one that it has.
struct copies_word {
  std::vector<copy_word> all{}; ///< by copy
  bool is_moving = false;       ///< it has heard that it is to move, and ends by itself (R37)
  std::uint64_t progress = 0;   ///< another number: it trains, or what it waits for before that gets on
  /// Since its start: what copies have taken, and for how long steps waited for them.
  std::uint64_t bytes_copied = 0, waited_us = 0;

  bool operator==(const copies_word&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, copies_word& x) {
    return f(x.all, x.is_moving, x.progress, x.bytes_copied, x.waited_us);
  }
};

} // namespace dlrun::protocol
