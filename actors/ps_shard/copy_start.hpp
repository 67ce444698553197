/// What a start of a PS shard waits for before a word of it goes out (rule R22).
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/ps_shard/copy_book.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <optional>
#include <utility>

namespace dlrun::ps_shard {

/// Pure: a start that does not know yet whom the one before it counted says nothing. Nor does it
/// before a copy that was counted has all that it begins with, or is known to be over.
class copy_start {
public:
  /// It has loaded that.
  void begin(const loaded_standing& restored) { begins_with_ = restored; }
  /// What the agent knows of the keeper. @returns whether an earlier start counted that one: of the
  /// first word only
  bool hear(const protocol::keeper_place& place) {
    if (!place.is_known) return false;
    return !std::exchange(has_heard_, true) && place.counts;
  }
  /// @returns once, when it may begin, what it begins with.
  std::optional<loaded_standing> settle(const copy_book& book, const own_store& mine) {
    const bool is_ahead = book.counted().value != 0 && !book.holds_all(mine);
    if (!has_heard_ || is_ahead) return std::nullopt;
    return std::exchange(begins_with_, std::nullopt);
  }
  /// Nothing has begun, or it may go on.
  bool is_settled() const { return !begins_with_; }
  /// It is the copy that it waits for.
  bool waits_for_copy(const copy_book& book) const { return begins_with_ && book.counted().value != 0; }

private:
  std::optional<loaded_standing> begins_with_{}; ///< until it is settled
  bool has_heard_ = false;                       ///< of the agent
};

} // namespace dlrun::ps_shard
