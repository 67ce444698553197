/// Whether the open step is late, so that a worker with nothing left to do asks for more (rule
/// R34).
#pragma once

#include "actors/protocol/time.hpp"

#include <algorithm>
#include <cstdint>
#include <dlrun/ids.hpp>
#include <optional>
#include <utility>

namespace dlrun::worker {

/// Pure: says whether the open step is late. Slots are divided such that no worker waits for longer
/// than one of its slots takes. So a step is late when a worker has waited that long, and a quarter
/// of the step beside, since measured speeds are off by that much.
class late_step {
public:
  /// It works on `step` now. Idempotent.
  void open(step_id step, protocol::time_point now);
  /// A slot took so long.
  void note_slot(protocol::duration took) { slot_ = took; }
  /// It has nothing to do of the open step, from the first such call on. `had_part`: slots of it
  /// were its own.
  void wait(bool had_part, protocol::time_point now) {
    if (!waits_since_) had_part_ = had_part;
    waits_since_ = waits_since_.value_or(now);
  }
  /// It has computed what it had asked for. Nothing happens when it has not asked of the open step:
  /// what it had asked for was of another one.
  void helped() {
    if (asked_ == 0) return;
    is_to_ask_ = true;
    ++helped_;
  }
  /// How often, with the open step.
  std::uint32_t times_helped() const { return helped_; }

  /// When it is to ask; only while it waits.
  protocol::time_point due() const;
  /// It asks. @returns how often it has, of this step.
  std::uint32_t ask(protocol::time_point now);

private:
  protocol::duration reference() const;

  std::optional<step_id> step_;
  protocol::time_point opened_{};
  std::optional<protocol::time_point> waits_since_;
  bool had_part_ = false;
  std::uint32_t asked_ = 0; ///< times
  protocol::time_point asked_at_{};
  bool is_to_ask_ = false;
  std::uint32_t helped_ = 0; ///< times
  protocol::duration slot_{};
  /// What a step takes, for who has no part in it. First steps are slow.
  protocol::duration usual_ = std::chrono::seconds(1);
  bool has_seen_step_ = false;
};

} // namespace dlrun::worker
