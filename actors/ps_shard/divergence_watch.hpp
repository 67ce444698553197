/// When a PS shard reports that a gradient is NaN or infinite.
#pragma once

#include "actors/protocol/end_messages.hpp"
#include "actors/protocol/time.hpp"

#include <optional>

namespace dlrun::ps_shard {

/// Pure: delays a PS shard's report of a divergence, which ends the job or takes it back. The
/// worker whose gradient diverged computes the step once more to find the slot, and its report says
/// more than a shard's can: so the worker may report first, for a while.
class divergence_watch {
public:
  /// The step could not be applied. It waits, and so do all steps after it.
  void found(protocol::divergence what, protocol::time_point now) {
    found_ = std::move(what);
    since_ = now;
  }
  /// All went back.
  void forget() { found_.reset(); }

  /// What is to be said now, again and again; nothing while somebody may say more. `usual` is the
  /// time that a step takes.
  std::optional<protocol::divergence> due(protocol::time_point now, protocol::duration usual) const {
    return found_ && now - since_ >= patience + patience_steps * usual ? found_ : std::nullopt;
  }

private:
  static constexpr protocol::duration patience = std::chrono::seconds(2);
  static constexpr int patience_steps = 4;

  std::optional<protocol::divergence> found_; ///< of this timeline
  protocol::time_point since_{};
};

} // namespace dlrun::ps_shard
