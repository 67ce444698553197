/// How other hosts leave the job (rules R33, R38).
#pragma once

#include "actors/agent/host_roster.hpp"
#include "actors/agent/hosted_actions.hpp"
#include "actors/agent/hosted_starts.hpp"
#include "actors/protocol/time.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// Pure: a host that is to leave goes when no worker runs there any more, unless hosts are held.
/// When the job is over all are dismissed, and told so until they have gone.
class host_departures {
public:
  /// @param repeat_after between two dismissals of a host
  host_departures(protocol::duration repeat_after, bool are_held)
      : repeat_after_(repeat_after)
      , are_held_(are_held) {}

  /// The job is complete, and its stores are not brought yet (R38): no host goes before it is
  /// dismissed.
  void hold() { are_held_ = true; }
  bool are_held() const { return are_held_; }
  /// Those that are to be let go.
  std::vector<std::string> may_go(const host_roster& roster, const hosted_starts& starts) const;

  /// The job is over.
  void dismiss(const std::string& reason, const host_roster& roster, hosted_actions& out);
  /// To be called at every tick.
  void repeat_dismissals(const host_roster& roster, protocol::time_point now, hosted_actions& out);

private:
  void send_dismissals(const host_roster& roster, hosted_actions& out) const;

  protocol::duration repeat_after_;
  bool are_held_;
  std::string dismissed_{};                      ///< why all are; "" as long as they are not
  std::optional<protocol::time_point> repeated_; ///< dismissals, last
};

/// Pure. From a host where nothing starts any more. A worker that has left starts elsewhere, as
/// after a notice from anybody (R33).
void send_workers_away(const std::string& host, hosted_starts& starts, protocol::time_point now,
                       hosted_actions& out);

} // namespace dlrun::agent
