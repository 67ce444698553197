/// How long gradients of other hosts are on their way, and when one is late.
#pragma once

#include "actors/protocol/time.hpp"

#include <algorithm>
#include <optional>

namespace dlrun::ps_shard {

/// Pure: says when a gradient from another host is late. All gradients of a PS shard have one size,
/// and those that come over one link share it, so each tells how long another may take.
class transfer_times {
public:
  /// One has arrived. One that was late counts twice as long as usual at most, so that lateness
  /// does not become usual at once; after six an old one counts a tenth.
  void add(protocol::duration took) {
    usual_ = usual_ ? (7 * *usual_ + 3 * std::min(took, 2 * *usual_)) / 10 : took;
  }

  /// Whether one that has been on its way for `time` is worth waiting for: twice as long as usual,
  /// since as much may come over the link beside it, and what threads vary by. While nothing has
  /// come nobody knows better.
  bool is_late(protocol::duration time) const { return usual_ && time > 2 * *usual_ + leeway; }

private:
  static constexpr protocol::duration leeway = std::chrono::milliseconds(20);
  std::optional<protocol::duration> usual_;
};

} // namespace dlrun::ps_shard
