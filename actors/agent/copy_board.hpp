/// Which copies of PS shards' stores hold all that was committed (rules R22, R25).
#pragma once

#include "actors/agent/managed_roles.hpp"
#include "actors/protocol/endpoint.hpp"
#include "actors/protocol/heartbeat_messages.hpp"
#include "actors/protocol/host_messages.hpp"

#include <map>
#include <optional>
#include <vector>

namespace dlrun::agent {

/// That of the keeper which runs.
struct kept_copy {
  bool is_whole = false;       ///< its PS shard has committed nothing that it lacks
  dlrun::incarnation keeper{}; ///< the start that has it
};
/// What is known before a PS shard or a keeper starts.
struct copy_facts {
  std::optional<kept_copy> copy{}; ///< of a PS shard whose keeper runs
  bool is_given_up = false;        ///< of a keeper: the start before was, on its host
};

/// Pure: what PS shards and keepers say in their heartbeats. The agent is the judge: it alone sees
/// every end of a keeper before anybody else, and decides where a PS shard starts. What it believes
/// is a lower bound: a PS shard counts its keeper before it says so, and goes on until the agent
/// says that this start is over. Nothing of it is journaled, so an agent that starts believes
/// nothing.
class copy_board {
public:
  /// Of a start in hand. @returns whether the copy of that PS shard has become whole
  bool hear(const protocol::heartbeat& beat, const managed_roles& roles);
  /// That start of a keeper is over. @returns whether its copy was whole
  bool end(const protocol::role_name& keeper, dlrun::incarnation self);
  /// The answer to it: nothing is known to who is not the start in hand of a PS shard.
  protocol::keeper_place answer(const protocol::heartbeat& beat, const managed_roles& roles) const;
  /// The copy of that PS shard, by what it has said of it; nothing where no keeper runs.
  std::optional<kept_copy> find(ps_shard_id shard, const managed_roles& roles) const;
  /// For a start of that role.
  copy_facts facts_for(const protocol::role_name& role, const managed_roles& roles) const;
  /// The PS shard says that its keeper, which counts, is silent. True once a start of the keeper,
  /// which is to be ended.
  bool is_to_end(const protocol::heartbeat& beat, const managed_roles& roles);
  /// Of a keeper whose copy is whole `all` says that; and of each what its PS shard says of it.
  std::vector<role_view> shown(std::vector<role_view> all, const managed_roles& roles) const;

private:
  struct keeper {
    dlrun::incarnation incarnation;
    protocol::endpoint at;
  };
  std::map<ps_shard_id, keeper> keepers_;
  std::map<ps_shard_id, protocol::copy_word> said_;    ///< by any start; `counted` 0 once it is to end
  std::map<ps_shard_id, dlrun::incarnation> whole_;    ///< starts of which hear() said so
  std::map<ps_shard_id, dlrun::incarnation> given_up_; ///< starts that run, or were over last
};

} // namespace dlrun::agent
