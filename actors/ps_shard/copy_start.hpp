/// What a start of a PS shard waits for before a word of it goes out (rule R22).
#pragma once

#include "actors/protocol/heartbeat_messages.hpp"
#include "actors/ps_shard/copy_chain.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: a start says nothing before it knows which copies the start before it counted; nor before
/// each of those has all that this start begins with, or is known to be over.
class copy_start {
public:
  /// The store is there, and it has loaded that.
  void begin(const loaded_standing& restored) { begins_with_ = restored; }
  /// What the agent knows of the keepers. @returns once, for the first word: the copies that an
  /// earlier start counted
  std::vector<std::size_t> hear(const protocol::keeper_places& places);
  /// @returns once, when it may begin: what it begins with, of which every copy that counts can
  /// restore all
  std::optional<loaded_standing> settle(const copy_chain& chain, const own_store& mine);
  /// It has begun, or the store is not there yet.
  bool is_settled() const { return !begins_with_; }
  /// It has heard enough, and waits for that copy.
  bool waits_for(const copy_book& copy, const own_store& mine) const {
    return begins_with_ && copy.counted().value != 0 && !copy.holds_all(mine);
  }

private:
  std::optional<loaded_standing> begins_with_{}; ///< until it is settled
  bool has_heard_ = false;                       ///< what the agent knows
};

} // namespace dlrun::ps_shard
