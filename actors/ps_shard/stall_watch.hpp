/// What a PS shard says of a disk that takes nothing.
#pragma once

#include "actors/protocol/time.hpp"

#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <optional>
#include <string>

namespace dlrun::ps_shard {

/// Pure: why the log or the snapshots stand still, what of that the user is told, and when there is
/// no hope.
class stall_watch {
public:
  /// For the user: it stands still, or keeps going.
  struct word {
    bool is_stalled = false;
    std::string text;
    bool operator==(const word&) const = default;
  };

  explicit stall_watch(ps_shard_id shard)
      : shard_(shard) {}

  // `why` it stands still, or nothing when it moves again. @returns what is new for the user.
  /// The store cannot be opened. It may say so again and again.
  std::optional<word> on_opening(const error& why, protocol::time_point now);
  std::optional<word> on_log(const std::optional<error>& why, protocol::time_point now);
  /// Training keeps going without new snapshots, but for the last one.
  std::optional<word> on_snapshot(const std::optional<error>& why, protocol::time_point now);

  bool is_stalled() const { return log_ || snapshot_; }
  /// The quota is used up and stays so: what is dropped soon may make room, but this has lasted for
  /// longer. Says so again after as long, should it be lost.
  std::optional<error> find_hopeless(protocol::time_point now);

private:
  std::optional<word> tell(const char* what, const std::optional<error>& why, protocol::time_point now);

  ps_shard_id shard_;
  std::optional<error> log_;
  std::optional<error> snapshot_;
  protocol::time_point since_{};
};

} // namespace dlrun::ps_shard
