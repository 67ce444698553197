/// The starts of roles that were ordered on other hosts, or wait for one.
#pragma once

#include "actors/agent/hosted_actions.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::agent {

using start_key = std::pair<protocol::role_name, dlrun::incarnation>;

struct hosted_start {
  protocol::fence self;
  std::optional<std::string> host{}; ///< where it was ordered; nothing: it waits for its store's
  std::uint64_t boot = 0;
  bool is_answered = false;
  bool is_heard = false;                    ///< it has given a sign of life
  std::optional<protocol::stop_how> stop{}; ///< asked to end
  protocol::time_point sent{};
  protocol::time_point waits_until{};
  std::vector<protocol::role_name> whole{}; ///< of a PS shard: keepers that have all that it had
  bool is_given_up = false;                 ///< of a keeper: the start before was, on its host
  bool moves = false;                       ///< the start before was to
  bool is_unheard = false; ///< of a keeper that another root started: it has not said what it holds
};

/// Pure: what each was told, which is repeated until its host has answered.
class hosted_starts {
public:
  explicit hosted_starts(protocol::duration repeat_after)
      : repeat_after_(repeat_after) {}

  /// Whom roles are to join that are ordered from here on.
  void coordinator_is(dlrun::incarnation incarnation, const protocol::endpoint& at) {
    coordinator_ = incarnation;
    coordinator_at_ = at;
  }
  /// Keeps it, and orders nothing.
  void put(const protocol::role_name& role, hosted_start one) {
    all_[{role, one.self.incarnation}] = std::move(one);
  }
  /// On the host that it names. Keeps it.
  void order(const protocol::role_name& role, hosted_start one, protocol::time_point now,
             hosted_actions& out);
  /// Where it has a host. One without is for the caller to end.
  void stop(const protocol::role_name& role, hosted_start& one, protocol::stop_how how,
            protocol::time_point now, hosted_actions& out);
  /// What that host has not answered, or is to end.
  void send_again(const std::string& host, protocol::time_point now, hosted_actions& out);
  /// What waits for an answer for too long.
  void repeat(protocol::time_point now, hosted_actions& out);
  void erase(const start_key& which) { all_.erase(which); }

  /// Null: it is not in hand.
  hosted_start* find(const start_key& which);
  const hosted_start* find(const protocol::role_name& role, const protocol::fence& self) const;
  std::map<start_key, hosted_start>& all() { return all_; }
  bool is_empty() const { return all_.empty(); }
  bool has_worker_on(const std::string& host) const;
  /// Of that PS shard: a keeper that another root started and that has not said what it holds;
  /// null: there is none.
  const protocol::role_name* unheard_copy(ps_shard_id shard) const;

private:
  void send(const protocol::role_name& role, hosted_start& one, protocol::time_point now,
            hosted_actions& out) const;

  protocol::duration repeat_after_;
  std::map<start_key, hosted_start> all_;
  dlrun::incarnation coordinator_{};
  protocol::endpoint coordinator_at_{};
};

} // namespace dlrun::agent
