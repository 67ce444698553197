/// register_watch: whether a root that begins, or waits, may take the register of its run (rules
/// R40, R43).
#pragma once

#include "persistence/etcd_owner.hpp"
#include "persistence/planted_bug.hpp"

#include <chrono>
#include <optional>

namespace dlrun::persistence {

/// How often a root that lives writes, and when it counts as lost.
struct register_rules {
  std::chrono::milliseconds renewal{1000};
  /// Of silence, by the clock of who looks: four renewals may be lost.
  std::chrono::milliseconds expiry{5000};
};

/// Pure: the caller looks, and says when. Silence is what lies between two looks that were answered
/// and found the same. If the next one was asked for only after more than a renewal, it begins
/// anew: in between the etcd may have answered nobody, or whoever looks was stopped, and maybe all
/// others with it. An answer that is slow itself counts as a renewal at most.
class register_watch {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// @param ended a root that is known to have ended, since its folder is not locked; nothing: none
  register_watch(register_rules rules, std::optional<etcd_owner> ended, planted_bug bug = planted_bug::none)
      : rules_{rules}
      , ended_{ended}
      , bug_{bug} {}

  enum class verdict : std::uint8_t {
    free, ///< may be taken, from whoever was seen
    held, ///< its root lives: it has written since the look before
    wait, ///< look again
  };
  /// @param seen who has it; nothing: there is none yet  @param given_up by who has it
  verdict look(const std::optional<etcd_owner>& seen, bool given_up, time_point asked, time_point answered);

private:
  bool has_ended(const etcd_owner& seen) const;

  register_rules rules_;
  std::optional<etcd_owner> ended_;
  std::optional<etcd_owner> last_{};  ///< seen
  time_point answered_{};             ///< the look before
  std::chrono::nanoseconds silent_{}; ///< since it was seen first, or since a gap
  planted_bug bug_;
};

} // namespace dlrun::persistence
