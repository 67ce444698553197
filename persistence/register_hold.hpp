/// register_hold: what a root knows of the register that it holds (rule R40).
#pragma once

#include "persistence/etcd_owner.hpp"
#include "persistence/planted_bug.hpp"

#include <optional>
#include <vector>

namespace dlrun::persistence {

/// Pure: no clock, no network. Each write compares what its holder wrote last, and puts the next
/// number there. A write without an answer may have been done, or may be done later; all that have
/// none compare the same, so that one of them is done at most.
class register_hold {
public:
  explicit register_hold(const etcd_owner& self, planted_bug bug = planted_bug::none)
      : self_{self}
      , last_{self.write}
      , bug_{bug} {}

  /// What a write compares, and what it puts in its place.
  struct attempt {
    etcd_owner before;
    etcd_owner after;
  };
  /// The next write. One that changes nothing else is the same until it has been answered.
  attempt next(bool has_changes);

  enum class outcome : std::uint8_t {
    done,
    again, ///< an earlier write was done after all: send next()
    lost,  ///< another root has the register: nothing of this one counts any more
  };
  /// @param found what was there in place of `sent.before`; nothing when the write was done
  outcome on_answer(const attempt& sent, const std::optional<etcd_owner>& found);

  const etcd_owner& self() const { return self_; }

private:
  outcome settle(const etcd_owner& done, outcome what);

  etcd_owner self_;    ///< with the last write that is known to be done
  std::uint64_t last_; ///< number that was given last
  std::vector<etcd_owner> unanswered_{};
  std::optional<etcd_owner> renewal_{}; ///< of those, one without other changes
  planted_bug bug_;
};

} // namespace dlrun::persistence
