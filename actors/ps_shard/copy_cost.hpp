/// What the copy of a PS shard's store costs the steps, and what is said of it.
#pragma once

#include "actors/protocol/copy_word.hpp"
#include "actors/protocol/durability.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <optional>
#include <string>

namespace dlrun::ps_shard {

/// How it is with the copy from now on, until the next word.
struct copy_activity {
  bool counts = false;        ///< nothing is committed without it
  bool is_on_the_way = false; ///< some bytes of it
  bool is_awaited = false;    ///< the next version lacks nothing but what the copy has to get first
  version_id applied{};
  std::uint64_t bytes = 0; ///< that it has taken so far
};

/// Pure. Whether a copy costs steps much. Yes if they wait for it for a tenth of the time, or
/// if it is on its way for half of the time: then whatever else goes the same way, parameters to a
/// worker, say, takes up to twice as long. One that was slow is so until both are below half of
/// that, so that a copy near the bound is not news again and again.
bool is_slow_copy(const protocol::copy_figures& measured, bool was_slow);

/// Pure. "2.68 MB a step at 118.0 MB/s: ..."
std::string describe(const protocol::copy_figures& measured);

/// Pure: adds up what happens, and says what it comes to: once, and when that changes.
class copy_cost {
public:
  /// Shorter: what happens once in a while would look as if it were so always.
  static constexpr auto window_min = std::chrono::seconds(10);
  static constexpr std::uint64_t steps_min = 4;
  /// Longer between two words, which come at least ten times a second: this process was stopped.
  static constexpr auto own_pause_min = std::chrono::milliseconds(500);

  /// For people.
  struct word {
    bool is_slow = false;
    std::string text;
    bool operator==(const word&) const = default;
  };

  /// @param keeper that has the copy
  copy_cost(protocol::role_name keeper, protocol::durability kept)
      : keeper_(keeper)
      , kept_(kept) {}

  /// To be called when something of it may have changed, and often. @returns what is new
  std::optional<word> note(const copy_activity& is, protocol::time_point now);

  /// Of the last window that was full.
  const protocol::copy_figures& figures() const { return figures_; }
  /// Since the start, for which steps have waited, whether the copy counted or was being filled.
  protocol::duration waited() const { return waited_; }

private:
  struct window {
    version_id first{}; ///< that stood when it began
    std::uint64_t bytes = 0;
    protocol::duration lasted{}, busy{}, waited{};
  };

  void add(protocol::duration elapsed);
  void follow(const copy_activity& is);
  bool is_full() const;
  protocol::copy_figures measured() const;
  word tell() const;

  protocol::role_name keeper_;
  protocol::durability kept_;
  copy_activity was_{};
  std::optional<protocol::time_point> noted_{};
  std::optional<window> window_{}; ///< nothing before the first step with a copy that counts
  protocol::duration waited_{};
  protocol::copy_figures figures_{};
};

} // namespace dlrun::ps_shard
