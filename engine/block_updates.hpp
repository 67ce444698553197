/// The updates of a range of a model's blocks: what a step makes of parameters, running statistics
/// and the optimizer's state.
#pragma once

#include "engine/parameter_layout.hpp"
#include "engine/update_rule.hpp"

#include <span>
#include <vector>

namespace dlrun::engine {

/// What an update takes from the specification and its timeline.
struct step_shape {
  std::uint64_t revision = 0; ///< of the specification: which update rule
  std::uint64_t records = 0;  ///< that are summed in the step's gradient
  std::uint32_t slots = 0;    ///< that hold records
  double norm = 0;            ///< of the whole mean gradient, where the job's PS shards exchange norms (R12)
};

/// A block in the memory of a range.
struct owned_block {
  engine::block block;
  std::uint64_t offset = 0;       ///< of its floats, within the range's
  std::uint64_t state_offset = 0; ///< of its state, within the range's state
  std::uint64_t state_floats = 0; ///< of the optimizer; 0 for what no optimizer updates
  float momentum = 0;             ///< of a buffer
};

/// Immutable and thread-safe: memory belongs to the caller.
class block_updates {
public:
  /// `rules`: one a revision of the specification, at least one, all with the same state a
  /// parameter.
  block_updates(const parameter_layout& layout, const shard_range& range, std::vector<update_rule> rules);

  const std::vector<owned_block>& blocks() const { return blocks_; }
  const update_rule& rule(std::uint64_t revision) const { return rules_.at(revision); }
  /// Floats of the optimizer's state of all blocks.
  std::size_t state_floats() const { return state_floats_; }
  /// Floats of all blocks and their state, without padding: of a snapshot.
  std::size_t image_floats() const { return image_floats_; }

  /// Fills the state (state_floats()) of before the first step.
  void start_state(std::span<float> state) const;
  /// Step `step` on one block: `sums` are the block's own sum of gradients, `in` and `out` the
  /// floats of the whole range before and after (they may be the same memory), `state` that of the
  /// whole range. @returns whether what it makes is finite.
  bool update(const owned_block& owned, step_id step, const step_shape& shape, std::span<const float> sums,
              std::span<const float> in, std::span<float> out, const kernels::cpu::update_state& state) const;

private:
  std::vector<update_rule> rules_;
  std::vector<owned_block> blocks_;
  std::size_t state_floats_ = 0;
  std::size_t image_floats_ = 0;
  bool streams_; ///< a whole version is larger than the caches
};

} // namespace dlrun::engine
