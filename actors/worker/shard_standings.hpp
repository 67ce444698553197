/// Where the PS shards stand, as they have said.
#pragma once

#include "actors/protocol/durability.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/step_messages.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace dlrun::worker {

/// Pure: keeps the newest state that each PS shard has told, all on one timeline (rule R3).
class shard_standings {
public:
  struct standing {
    dlrun::incarnation incarnation;
    version_id applied{};
    version_id committed{};
    bool serves_previous = false; ///< version applied - 1 too
    version_id highest_ever{};    ///< only for planted_bug::max_version

    bool serves(version_id version) const;
  };
  /// What a word changed.
  struct news {
    bool is_new_start = false; ///< or the first word
    version_id before{};       ///< where it stood
    version_id applied{};      ///< where it stands

    bool has_moved() const { return is_new_start || applied > before; }
  };

  /// Of a job with so many PS shards, at least one.
  explicit shard_standings(std::uint32_t ps_shards, protocol::planted_bug bug = protocol::planted_bug::none);

  /// Within one start of a shard versions only grow; a newer start replaces what was known,
  /// downwards too.
  /// @returns nothing for an older one, which is ignored.
  std::optional<news> hear(const protocol::shard_state& state);
  void clear() { known_.clear(); }

  bool is_empty() const { return known_.empty(); }
  /// The first shard that was not heard, if any.
  std::optional<ps_shard_id> first_unheard() const;
  /// Every shard was heard.
  bool is_complete() const { return known_.size() == ps_shards_; }
  const std::map<ps_shard_id, standing>& all() const { return known_; }
  /// Null before it was heard.
  const standing* find(ps_shard_id shard) const;
  /// The lowest version that any stands at (R6); empty before every shard was heard.
  std::optional<version_id> lowest() const;
  /// Nobody will ask for a gradient of `step` again, as far as its shard knows (R10). With
  /// `snapshots` what is between two of them is computed again, so that a gradient is of no use
  /// when it is applied.
  bool are_past(step_id step, protocol::durability durability) const;

private:
  std::uint32_t ps_shards_;
  protocol::planted_bug bug_;
  std::map<ps_shard_id, standing> known_;
};

} // namespace dlrun::worker
