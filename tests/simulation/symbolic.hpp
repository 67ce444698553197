/// The arithmetic that is trained, with numbers replaced by hashes: two values are the same bits if and only
/// if they were made from the same things in the same way. A sum is commutative and not associative, as with
/// floats.
#pragma once

#include "actors/protocol/reduction_tree.hpp"
#include "tests/simulation/random_source.hpp"

#include <cstdint>
#include <vector>

namespace dlrun::simulation {

using value = std::uint64_t;

/// What is trained.
struct job_shape {
  std::uint32_t ps_shards = 1;
  std::uint32_t slots = 1;           ///< K
  std::uint64_t steps = 1;           ///< N
  std::uint64_t steps_per_epoch = 1; ///< the last step of an epoch is a partial one
  std::uint32_t slots_of_last = 1;   ///< slots of that step
  std::uint64_t records_of_last = 1; ///< records of the last slot of that step
  static constexpr std::uint64_t records_per_slot = 4;

  std::uint32_t slots_of(step_id step) const { return is_partial(step) ? slots_of_last : slots; }
  std::uint64_t records_of(step_id step, slot_id slot) const {
    return is_partial(step) && slot.value + 1 == slots_of_last ? records_of_last : records_per_slot;
  }
  std::uint64_t records_of(step_id step) const;
  std::uint64_t records_of(step_id step, protocol::slot_range slots) const;

private:
  bool is_partial(step_id step) const { return (step.value + 1) % steps_per_epoch == 0; }
};

value initial(ps_shard_id shard);
/// Gradient of one slot for one PS shard, from the parameters of all of them.
value slot_gradient(ps_shard_id shard, step_id step, slot_id slot, value whole_vector);
value sum(value left, value right);
value update(value parameters, value root);
/// All parts as one, in shard order.
value whole(const std::vector<value>& parts);
/// The summed gradient of a node of the tree.
value node_gradient(ps_shard_id shard, step_id step, protocol::slot_range node, value whole_vector);

/// The undisturbed run.
class oracle {
public:
  explicit oracle(const job_shape& shape);
  value parameters(version_id version, ps_shard_id shard) const {
    return versions_.at(version.value).at(shard.value);
  }
  value whole_parameters(version_id version) const { return whole(versions_.at(version.value)); }

private:
  std::vector<std::vector<value>> versions_;
};

} // namespace dlrun::simulation
