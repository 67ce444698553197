/// Whether the agent wants a PS shard to be on another host next (rule R37).
#pragma once

#include "actors/protocol/time.hpp"

#include <cstdint>
#include <optional>

namespace dlrun::ps_shard {

/// Pure: the agent says so with each answer to a heartbeat, and not any more when that is undone.
/// It holds for a while only: whoever gave the order may be gone, and nobody would take it back.
class move_order {
public:
  /// Two heartbeats that are lost, each of which is waited for for 2 s, take less.
  static constexpr auto silence_max = std::chrono::seconds(5);

  void on_answer(bool moves, protocol::time_point now) { told_ = moves ? std::optional(now) : std::nullopt; }
  bool holds(protocol::time_point now) const { return told_ && now - *told_ < silence_max; }
  /// With each heartbeat. @returns how often it was free: it trained, or waited for no store
  std::uint64_t count_free(bool is_free) { return free_ += is_free ? 1 : 0; }

private:
  std::optional<protocol::time_point> told_{};
  std::uint64_t free_ = 0;
};

} // namespace dlrun::ps_shard
