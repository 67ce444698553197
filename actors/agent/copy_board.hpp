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

/// That of a keeper which runs.
struct kept_copy {
  bool is_whole = false;       ///< its PS shard has committed nothing that it lacks
  dlrun::incarnation keeper{}; ///< the start that has it
};
/// What is known before a PS shard or a keeper starts.
struct copy_facts {
  std::vector<protocol::role_name> whole{}; ///< of a PS shard: keepers that run and have whole copies
  bool is_given_up = false;                 ///< of a keeper: the start before was, on its host
  bool moves = false;                       ///< the start before was to
};

/// Pure: what PS shards and keepers say in their heartbeats. The agent is the judge: it alone sees
/// every end of a keeper before anybody else, and decides where a PS shard starts. What it believes
/// is a lower bound: a PS shard counts a keeper before it says so, and goes on until the agent
/// says that this start is over. Of several copies each stands for itself. Nothing of it is
/// journaled, so an agent that starts believes nothing.
class copy_board {
public:
  /// Of a start in hand. @returns the keepers whose copies have become whole
  std::vector<protocol::role_name> hear(const protocol::heartbeat& beat, const managed_roles& roles);
  /// That start of a keeper is over. @returns whether its copy was whole
  bool end(const protocol::role_name& keeper, dlrun::incarnation self);
  /// The answer to it: nothing is known to who is not the start in hand of a PS shard.
  protocol::keeper_places answer(const protocol::heartbeat& beat, const managed_roles& roles) const;
  /// The copy of that keeper, by what its PS shard has said of it; nothing where it does not run.
  std::optional<kept_copy> find(const protocol::role_name& keeper, const managed_roles& roles) const;
  /// For a start of that role.
  copy_facts facts_for(const protocol::role_name& role, const managed_roles& roles) const;
  /// The PS shard says that keepers which count are silent. @returns once a start those that are to
  ///   be ended
  std::vector<protocol::role_name> to_end(const protocol::heartbeat& beat, const managed_roles& roles);
  /// Of a keeper whose copy is whole `all` says that; and of each what its PS shard says of it.
  std::vector<role_view> shown(std::vector<role_view> all, const managed_roles& roles) const;

private:
  struct located_keeper {
    dlrun::incarnation incarnation;
    protocol::endpoint at;
  };
  template <class Value>
  using by_keeper = std::map<protocol::role_name, Value>;

  protocol::keeper_place place_of(const protocol::role_name& keeper, const managed_roles& roles) const;

  by_keeper<located_keeper> keepers_;
  by_keeper<protocol::copy_word> said_;    ///< by any start of the PS shard; `counted` 0 once it is to end
  by_keeper<dlrun::incarnation> whole_;    ///< starts of which hear() said so
  by_keeper<dlrun::incarnation> given_up_; ///< starts that run, or were over last
};

} // namespace dlrun::agent
