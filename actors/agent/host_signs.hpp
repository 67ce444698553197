/// What tells the root of the agent of a host that is there: beats, its link, its words.
#pragma once

#include "actors/agent/beats/sighting.hpp"
#include "actors/agent/host_rules.hpp"
#include "actors/protocol/time.hpp"

#include <optional>
#include <string>
#include <utility>

namespace dlrun::agent {

/// Pure: judges from these whether that start of the agent is lost, and why. Where beats pass they
/// decide (R29), and a lost link has time to come back; where none pass the link decides, and what
/// comes over it.
class host_signs {
public:
  host_signs() = default;
  /// Of an agent that has come at that time.
  explicit host_signs(protocol::time_point joined)
      : joined_(joined)
      , heard_(joined) {}

  /// There is a link to it, new or again.
  void on_link(protocol::time_point now) {
    heard_ = now;
    link_lost_.reset();
  }
  void on_link_lost(protocol::time_point now) {
    if (!link_lost_) link_lost_ = now;
  }
  /// It said something over the link.
  void on_heard(protocol::time_point now) { heard_ = now; }
  void see(const sighting& seen) { seen_ = seen; }
  /// Nobody could hear it for so long, since this process was stopped.
  void excuse(protocol::duration paused);
  /// A link that is lost from now on is lost anew.
  void forget_loss() { link_lost_.reset(); }

  bool is_link_lost() const { return link_lost_.has_value(); }
  bool is_silent() const { return seen_.seen == sight::silent; }
  /// Once, until take_passing(): none of its beats has come through in time.
  bool take_blocked(const host_rules& rules, protocol::time_point now);
  /// Whether take_blocked() was told, and they come through after all.
  bool take_passing() { return std::exchange(is_told_blocked_, false); }
  /// @param has_ended the command that ran it has
  /// @returns "" when it is not lost
  std::string why_lost(const host_rules& rules, bool has_ended, protocol::time_point now) const;

private:
  protocol::time_point joined_{};
  protocol::time_point heard_{};
  sighting seen_{};
  bool is_told_blocked_ = false;
  std::optional<protocol::time_point> link_lost_{};
};

} // namespace dlrun::agent
