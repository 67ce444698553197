/// Which roles give no sign of life, or are at one slot for too long.
#pragma once

#include "actors/agent/role_end.hpp"
#include "actors/agent/slot_clock.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/time.hpp"

#include <map>
#include <optional>
#include <vector>

namespace dlrun::agent {

struct life_rules {
  /// A role that gives no sign of life for so long is killed (and then restarted like any that
  /// dies). Larger: a stopped process is tolerated longer, a hung one costs longer.
  protocol::duration hang_after = std::chrono::seconds(10);
  /// The same before its first sign of life: loading data takes a while.
  protocol::duration start_patience = std::chrono::seconds(60);
  /// A worker that is at one slot for longer, while it gives signs of life, hangs and is killed.
  /// Nothing: that follows from how long slots take (slot_patience).
  std::optional<protocol::duration> slot_timeout{};
};

/// Pure: of the newest start of each role, when it was heard and what it was seen at. A start that
/// hangs is named once. What is known of one that is over stays until the next begins.
class life_signs {
public:
  explicit life_signs(life_rules rules)
      : rules_(rules)
      , patience_(rules.slot_timeout) {}

  void begin(const protocol::role_name& role, protocol::time_point now);
  void end(const protocol::role_name& role);
  void hear(const protocol::role_name& role, protocol::time_point now);
  /// Periodic. Ticks far apart mean that this process was stopped: silence meanwhile proves
  /// nothing. @returns who is silent for too long.
  std::vector<protocol::role_name> tick(protocol::time_point now);
  /// What a running start is seen at, at every tick. @returns how long it has been at its slot, if
  /// that is too long.
  std::optional<protocol::duration> look(const seen_work& seen, protocol::time_point now);

  /// It had got somewhere: it was heard.
  bool has_settled(const protocol::role_name& role) const;
  /// It was named as one that hangs.
  bool is_hung(const protocol::role_name& role) const;
  /// Since it was heard, or began.
  protocol::duration silence(const protocol::role_name& role, protocol::time_point now) const;
  /// Whether that alone proves that it hangs.
  bool is_silent(const protocol::role_name& role, protocol::time_point now) const {
    return silence(role, now) >= rules_.hang_after;
  }

private:
  struct start {
    protocol::time_point began{};
    std::optional<protocol::time_point> heard{};
    bool runs = false;
    bool hung = false;
    slot_clock clock{};
  };
  const start& of(const protocol::role_name& role) const;

  life_rules rules_;
  slot_patience patience_;
  std::map<protocol::role_name, start> starts_;
  std::optional<protocol::time_point> last_tick_;
};

} // namespace dlrun::agent
