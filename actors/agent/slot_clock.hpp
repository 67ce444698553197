/// How long a worker has computed one slot, and how long it may.
#pragma once

#include "actors/protocol/time.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace dlrun::agent {

/// Pure: measures how long a worker has computed one slot. It counts only while the worker gives
/// signs of life and this process looks: not while the host sleeps or either process is stopped.
class slot_clock {
public:
  /// More than this from one look to the next is a pause of somebody else.
  static constexpr protocol::duration look_max = std::chrono::milliseconds(500);

  /// `sequence` changes when the worker begins with something or ends it. @returns how long it took
  /// what it has ended since the last look, 0 when it has not ended anything.
  protocol::duration look(std::uint64_t sequence, bool gives_signs, protocol::time_point now) {
    const auto since = std::exchange(looked_, now);
    if (sequence != std::exchange(sequence_, sequence)) return std::exchange(time_, {});
    if (gives_signs && since != protocol::time_point{}) time_ += std::min(now - since, look_max);
    return {};
  }
  /// At what it is at.
  protocol::duration time() const { return time_; }

private:
  std::uint64_t sequence_ = 0;
  protocol::time_point looked_{};
  protocol::duration time_{};
};

/// Pure: says how long a slot may take, by how long others took. All slots of a job do the same
/// arithmetic on equally many records; when one takes longer it is the host's doing: pages, clocks,
/// other load.
class slot_patience {
public:
  /// How long a worker may be at one slot when none was seen to end: it prepares its kernels first.
  static constexpr protocol::duration unknown = std::chrono::minutes(10);
  /// Afterwards at least this, which a host that pages may take at once,
  static constexpr protocol::duration least = std::chrono::seconds(30);
  /// and the longest slot so many times, which is what a host under load may take longer.
  static constexpr int factor = 20;

  /// `fixed`: what the user says it is.
  explicit slot_patience(std::optional<protocol::duration> fixed)
      : fixed_(fixed) {}

  /// A slot took that long. 0: none has ended.
  void note(protocol::duration slot) { longest_ = std::max(longest_, slot); }
  protocol::duration time() const {
    if (fixed_) return *fixed_;
    return longest_ == protocol::duration{} ? unknown : std::max(least, factor * longest_);
  }

private:
  std::optional<protocol::duration> fixed_;
  protocol::duration longest_{};
};

} // namespace dlrun::agent
