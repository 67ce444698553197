/// Sees when a step takes far longer than the steps before it.
#pragma once

#include "actors/data_dispatcher/running_mean.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/time.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>

namespace dlrun::data_dispatcher {

struct straggler_rules {
  /// A step open for this many times the recent step time (and at least `open_min`) makes every
  /// live worker compute every slot of it: an idle worker helps a straggler.
  double factor = 4;
  protocol::duration open_min = std::chrono::milliseconds(500);
};

/// Pure: same calls, same answers.
class straggler_watch {
public:
  explicit straggler_watch(straggler_rules rules)
      : rules_(rules) {}

  /// All PS shards have applied `version`. False when that is no news. `is_usual`: the steps since
  /// were computed as usual, and their time counts.
  bool on_version(version_id version, bool is_usual, protocol::time_point now) {
    if (version == version_) return false;
    if (version_ && version > *version_ && is_usual)
      step_seconds_ = running_mean(step_seconds_, protocol::to_seconds(now - since_) /
                                                      static_cast<double>(version.value - version_->value));
    version_ = version;
    since_ = now;
    return true;
  }
  /// The open step waited for something else than a worker until now.
  void excuse(protocol::time_point now) { since_ = std::max(since_, now); }

  /// The version that all PS shards have applied; nothing before the first.
  const std::optional<version_id>& version() const { return version_; }
  /// Why everybody should compute the open step; empty while nobody needs to.
  std::string why_help(protocol::time_point now) const {
    const double open = protocol::to_seconds(now - since_);
    const double least = protocol::to_seconds(rules_.open_min);
    // Before a step was measured: ten times the least, since first steps are slow.
    const double usual = step_seconds_ > 0 ? step_seconds_ : 10 * least;
    if (!version_ || open < std::max(least, rules_.factor * usual)) return {};
    return fmt::format("step {} is open for {:.0f} ms, usual are {:.0f} ms: everybody computes all of it",
                       *version_, 1e3 * open, 1e3 * step_seconds_);
  }

private:
  straggler_rules rules_;
  std::optional<version_id> version_;
  protocol::time_point since_{};
  double step_seconds_ = 0; ///< 0: not measured yet
};

} // namespace dlrun::data_dispatcher
