/// How long the PS shard has waited for its copy, which gets nowhere.
#pragma once

#include "actors/protocol/copy_messages.hpp"
#include "actors/protocol/time.hpp"

#include <optional>

namespace dlrun::ps_shard {

/// What of the copy is waited for.
struct awaited_parts {
  bool log = false;
  bool snapshots = false;
  bool either = false; ///< all that there is: it gets on with one or with the other
};

/// Pure: what the copy has got is news if it has never had as much. So a keeper that takes some
/// parts again and again, and then fails, is no better than one that says nothing. Log and
/// snapshots count each for itself: a disk on which no snapshot has room may have some for records.
class copy_wait {
public:
  /// A copy that is waited for and gets no further for so long, and time_to_keep(), is given up.
  static constexpr auto silence_max = std::chrono::seconds(3);
  /// Longer between two ticks: this process was stopped, and heard nothing for that reason.
  static constexpr auto own_pause_min = std::chrono::milliseconds(500);

  /// Newest word last.
  void on_standing(const protocol::copy_standing& standing, protocol::time_point now);
  /// To be told often. @param waits what the PS shard waits for
  void on_tick(const awaited_parts& waits, protocol::time_point now);
  /// How often it has got further.
  std::uint64_t news() const { return news_; }
  bool is_too_long(protocol::time_point now) const;

private:
  struct waiting {
    std::optional<protocol::time_point> since{}; ///< nothing: it is not waited for
    protocol::copy_standing furthest{};

    void note(const protocol::copy_standing& said, protocol::time_point now);
    void tick(bool is_awaited, bool was_stopped, protocol::time_point now);
    bool is_late(protocol::time_point now, protocol::duration more) const {
      return since && now - *since > silence_max + more;
    }
  };

  std::uint64_t news_ = 0;
  waiting log_;
  waiting snapshots_;
  waiting either_;
  std::optional<protocol::time_point> ticked_{};
};

} // namespace dlrun::ps_shard
