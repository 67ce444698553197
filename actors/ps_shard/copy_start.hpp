/// What a start of a PS shard waits for before a word of it goes out (rule R22).
#pragma once

#include "actors/protocol/heartbeat_messages.hpp"
#include "actors/ps_shard/copy_book.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <optional>
#include <utility>

namespace dlrun::ps_shard {

/// Pure: a start says nothing before it knows whether the start before it counted a copy; and if
/// that did, not before that copy has all that this start begins with, or is known to be over.
class copy_start {
public:
  /// The store is there, and it has loaded that.
  void begin(const loaded_standing& restored) { begins_with_ = restored; }
  /// What the agent knows of the keeper. @returns once, for the first word: whether an earlier
  /// start counted the copy of that one
  bool hear(const protocol::keeper_place& place) {
    if (!place.is_known) return false;
    return !std::exchange(has_heard_, true) && place.counts;
  }
  /// @returns once, when it may begin: what it begins with.
  std::optional<loaded_standing> settle(const copy_book& book, const own_store& mine) {
    const bool lacks_some = book.counted().value != 0 && !book.holds_all(mine);
    if (!has_heard_ || lacks_some) return std::nullopt;
    return std::exchange(begins_with_, std::nullopt);
  }
  /// It has begun, or the store is not there yet.
  bool is_settled() const { return !begins_with_; }
  /// It has heard enough, and waits for the copy.
  bool waits_for_copy(const copy_book& book) const { return begins_with_ && book.counted().value != 0; }

private:
  std::optional<loaded_standing> begins_with_{}; ///< until it is settled
  bool has_heard_ = false;                       ///< what the agent knows
};

} // namespace dlrun::ps_shard
