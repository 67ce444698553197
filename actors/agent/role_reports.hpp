/// What the roles say of themselves in their heartbeats.
#pragma once

#include "actors/protocol/heartbeat_messages.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dlrun::agent {

/// A role as `dlrun status` shows it.
struct role_view {
  protocol::role_name role;
  std::int32_t pid = 0; ///< 0: not running
  dlrun::incarnation incarnation;
  std::string state;           ///< starting, training, waiting, evaluating, done, restarting, stopped, ...
  std::uint32_t slots = 0;     ///< of each step, that a worker has a lease for
  double slots_per_second = 0; ///< that it computes
  protocol::store_standing store{};   ///< of a PS shard
  protocol::version_set restorable{}; ///< from it
  bool is_leaving = false;            ///< it was asked to, and has not heard otherwise
  std::uint64_t progress = 0;         ///< of a PS shard that is to move: another number when it gets on
  /// Of a keeper: what the PS shard says of its copy, once it has heard of that.
  std::optional<protocol::copy_word> copy{};
};

/// A start of it is in hand.
inline bool runs(const role_view& role) { return role.incarnation != dlrun::incarnation{}; }

/// The copy of a PS shard that this keeper has holds all that was committed.
inline bool is_whole(const role_view& keeper) { return runs(keeper) && keeper.state == "whole"; }

/// Pure: the newest word of each role, for `dlrun status`, the display and who watches them.
class role_reports {
public:
  explicit role_reports(std::uint32_t ps_shards)
      : ps_shards_(ps_shards) {}

  /// Of a start in hand, or of the data dispatcher, for which the coordinator's process speaks. Of
  /// a PS shard that has not opened its store yet, what the start before it said of that still
  /// holds.
  void hear(const protocol::heartbeat& beat);
  /// The agent knows better: it starts the role, or sees its end.
  void set_state(const protocol::role_name& role, std::string state) {
    heard_[role].state = std::move(state);
  }

  /// As in role_view.
  std::string state(const protocol::role_name& role) const;
  /// Fills in what a worker says of its share and its speed, and a PS shard of its store.
  void add_details(role_view& view) const;
  /// Lowest version that the PS shards have reported; 0 before.
  std::uint64_t step() const { return lowest_of_ps_shards(&protocol::heartbeat::step); }
  /// What is on the disk of all of them: where `dlrun resume` would go on were everybody dead. 0:
  /// from the begin.
  std::uint64_t durable_step() const { return lowest_of_ps_shards(&protocol::heartbeat::durable_step); }
  const std::optional<protocol::training_metrics>& metrics() const { return metrics_; }
  /// Steps that are in them: those of the PS shard that told them, which may be ahead of others.
  std::uint64_t metrics_step() const { return metrics_step_; }
  /// Nothing before the data dispatcher was heard.
  const std::optional<protocol::heartbeat>& dispatcher() const { return dispatcher_; }

private:
  std::uint64_t lowest_of_ps_shards(std::uint64_t protocol::heartbeat::*step) const;

  std::uint32_t ps_shards_;
  std::map<protocol::role_name, protocol::heartbeat> heard_;
  std::optional<protocol::heartbeat> dispatcher_;
  std::optional<protocol::training_metrics> metrics_;
  std::uint64_t metrics_step_ = 0;
};

} // namespace dlrun::agent
