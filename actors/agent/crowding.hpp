/// Which PS shard or copy is to be elsewhere, for hosts to have what they are good for, and equally
/// many (rule R44).
#pragma once

#include "actors/agent/placement.hpp"
#include "actors/agent/role_reports.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// A PS shard that is better on the host of its copy, or a keeper that is better elsewhere.
struct misplaced_role {
  protocol::role_name role;
  std::string why; ///< for people
};

/// Pure. Where the best whole copy of a PS shard is; "": there is none.
/// @param bug for the property test
std::string host_of_copy(ps_shard_id shard, const std::vector<role_view>& roles, const placement& places,
                         protocol::planted_bug bug);

/// Pure: spreads PS shards over the hosts, and brings their copies to better ones, one at a time,
/// while nothing would be lost with any host.
class shard_spread {
public:
  /// For which all must have been well before one moves: a host that comes and goes moves none.
  static constexpr auto patience = std::chrono::seconds(10);

  /// @param bug for the property test
  explicit shard_spread(protocol::planted_bug bug = protocol::planted_bug::none)
      : bug_{bug} {}

  /// Again and again. @returns the one that is to move, until it has; nothing: none is to.
  /// @param may_move nothing else moves by intent
  std::optional<misplaced_role> next(const std::vector<role_view>& roles, const placement& places,
                                     bool may_move, protocol::time_point now);
  /// It does not get away: none is to move for a while.
  void rest(protocol::time_point now);

private:
  protocol::planted_bug bug_;
  std::optional<misplaced_role> moving_;
  std::optional<protocol::time_point> well_since_; ///< all PS shards train, and all copies are whole
};

} // namespace dlrun::agent
