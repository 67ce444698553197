/// Which copies of PS shards' stores hold all that was committed (rules R22, R25).
#pragma once

#include "actors/protocol/messages.hpp"

#include <map>
#include <optional>

namespace dlrun::agent {

/// Pure: what PS shards and keepers say in their heartbeats. The agent is the judge: it alone sees
/// every end of a keeper before anybody else, and decides where a PS shard starts. What it believes
/// is a lower bound: a PS shard counts its keeper before it says so, and goes on until the agent
/// says that this start is over. Nothing of it is journaled, so an agent that starts believes
/// nothing.
class copy_board {
public:
  /// The keeper's start in hand; nothing while none runs, or it is to end.
  using keeper_start = std::optional<dlrun::incarnation>;

  /// Of a start in hand.
  void hear(const protocol::heartbeat& beat);
  /// For its PS shard.
  protocol::keeper_place answer(ps_shard_id shard, keeper_start runs) const;
  /// The PS shard commits nothing that this copy lacks.
  bool is_whole(ps_shard_id shard, keeper_start runs) const;
  /// The PS shard says that its keeper, which counts, is silent. True once a start.
  bool is_to_end(const protocol::heartbeat& beat, keeper_start runs);
  /// The PS shard's newest word; null before it has said anything of a copy.
  const protocol::copy_word* word_of(ps_shard_id shard) const;

private:
  struct keeper {
    dlrun::incarnation incarnation;
    protocol::endpoint at;
  };
  std::map<ps_shard_id, keeper> keepers_;
  std::map<ps_shard_id, protocol::copy_word> words_;     ///< newest
  std::map<ps_shard_id, dlrun::incarnation> counted_;    ///< by any start of the PS shard
  std::map<ps_shard_id, dlrun::incarnation> given_up_;
};

} // namespace dlrun::agent
