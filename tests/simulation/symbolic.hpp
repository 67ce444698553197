/// The arithmetic that is trained, with numbers replaced by hashes: two values are the same bits if
/// and only if they were made from the same things in the same way. A sum is commutative and not
/// associative, as with floats.
#pragma once

#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/timeline.hpp"
#include "tests/simulation/random_source.hpp"

#include <cstdint>
#include <map>
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
  bool couples = false;              ///< an update needs a norm over the gradients of all shards (R12)
  static constexpr std::uint64_t records_per_slot = 4;

  std::uint32_t slots_of(step_id step) const { return is_partial(step) ? slots_of_last : slots; }
  std::uint64_t records_of(step_id step, slot_id slot) const {
    return is_partial(step) && slot.value + 1 == slots_of_last ? records_of_last : records_per_slot;
  }

private:
  bool is_partial(step_id step) const { return (step.value + 1) % steps_per_epoch == 0; }
};

/// What a timeline trains beside the shape: which revision each step is made with, and what is left
/// out.
struct course {
  std::vector<std::uint64_t> revisions; ///< one a step
  protocol::parked_slots_list parked;

  auto operator<=>(const course&) const = default;
};
course course_of(const protocol::history& history, std::uint64_t steps);

value initial(ps_shard_id shard);
/// Gradient of one slot for one PS shard, from the parameters of all of them.
/// Without the records at `left_out`.
value slot_gradient(ps_shard_id shard, step_id step, slot_id slot, value whole_vector,
                    const std::vector<std::uint32_t>& left_out = {});
/// Of a slot that is left out.
value zero_gradient();
value sum(value left, value right);
/// What a shard tells the others of its root, and what is made of all of that.
value norm_of(value root);
value combine(const std::vector<std::vector<std::uint64_t>>& norms);
value update(value parameters, value root, value coupled, std::uint64_t revision);
/// All parts as one, in shard order.
value whole(const std::vector<value>& parts);
/// The summed gradient of a node of the tree.
value node_gradient(ps_shard_id shard, step_id step, protocol::slot_range node, value whole_vector,
                    const protocol::parked_slots_list& parked);

/// What early stopping and the best version go by: small numbers, so that some are equal.
inline double loss_of(const protocol::evaluated& result) {
  return static_cast<double>(result.loss_sum_bits % 16);
}

/// The undisturbed runs, one for each course.
class oracle {
public:
  explicit oracle(const job_shape& shape)
      : shape_(shape) {}
  value parameters(const course& trained, version_id version, ps_shard_id shard) {
    return versions_of(trained).at(version.value).at(shard.value);
  }
  value whole_parameters(const course& trained, version_id version) {
    return whole(versions_of(trained).at(version.value));
  }
  /// Training records in the parameters of `version`.
  std::uint64_t records(const course& trained, version_id version) const;

private:
  using versions = std::vector<std::vector<value>>; ///< by version, by shard
  const versions& versions_of(const course& trained);

  job_shape shape_;
  std::map<course, versions> runs_;
};

} // namespace dlrun::simulation
