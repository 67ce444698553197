/// The gradients of steps that are not applied yet, as disjoint subtrees (rule R5).
#pragma once

#include "actors/protocol/planted_bug.hpp"
#include "actors/ps_shard/ledger.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: which subtrees are there, never their numbers. What it says to do with values goes into
/// `out`.
class open_steps {
public:
  struct held_value {
    value_id value;
    coverage slots; ///< which slots are really in it, from the pushes that made it
    /// Of a root: how it is made, while nobody has ordered that.
    std::optional<combine> last_sum{};
  };

  /// `first_value`: values that it makes are numbered from here.
  open_steps(std::function<std::uint32_t(step_id)> slots_of, std::uint64_t first_value,
             protocol::planted_bug bug);

  /// Whether all of `slots` is held already.
  bool holds(step_id step, protocol::slot_range slots) const;
  /// `slots` is a node of the step's tree, and not held.
  void insert(step_id step, protocol::slot_range slots, value_id value, ps_shard_actions& out);
  /// R18: the gradients of parked slots are zero, and there before anything is pushed.
  void fill(step_id step, const std::vector<slot_id>& parked, ps_shard_actions& out);
  /// The sum over all slots; null while it is not complete.
  const held_value* root(step_id step) const;
  /// The last sum of a complete step, for who makes it together with what it is for; nothing where
  /// it is ordered already, or the root was pushed whole.
  std::optional<combine> take_last_sum(step_id step);
  /// Orders the last sums that nobody took.
  void order_last_sums(ps_shard_actions& out);
  /// The step is applied; its value is no longer named here.
  void close(step_id step);
  /// Everything goes.
  void clear(ps_shard_actions& out);
  /// Slots of the step that are in nothing held.
  std::vector<slot_id> missing(step_id step) const;
  /// Slots held of `from` and later steps, neighbours merged, at most reported_slots_max runs.
  std::vector<protocol::step_slots> runs(step_id from) const;

private:
  using nodes = std::map<protocol::slot_range, held_value>; ///< disjoint nodes of the step's tree

  void merge_upwards(step_id step, nodes::iterator node, ps_shard_actions& out);
  held_value merge(held_value left, held_value right);
  bool add_copy(step_id step, protocol::slot_range slots, value_id value, ps_shard_actions& out);
  void insert_in_arrival_order(step_id step, protocol::slot_range slots, value_id value,
                               ps_shard_actions& out);

  std::function<std::uint32_t(step_id)> slots_of_;
  std::uint64_t next_value_;
  protocol::planted_bug bug_;
  std::map<step_id, nodes> open_;
};

} // namespace dlrun::ps_shard
