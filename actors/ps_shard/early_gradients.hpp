/// What is there of the gradients of the step that is applied next, while they are computed.
#pragma once

#include "actors/protocol/reduction_tree.hpp"
#include "actors/ps_shard/gradient.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dlrun::ps_shard {

/// Gradients of one step, each of a subtree of its slots and final from some float on: networks
/// make them from the last layer to the first. Where they cover the step, what is final in all of
/// them can be summed and applied. Not thread-safe; what work() gives may be used on another
/// thread.
class early_gradients {
public:
  using step_name = std::pair<timeline_id, step_id>;

  /// Floats that can be applied, and how to make their sum.
  struct work {
    std::uint64_t from = 0;
    std::uint32_t slots = 0; ///< of the step
    std::map<protocol::slot_range, gradient> gradients;

    bool is_one() const { return gradients.size() == 1; }
    /// Floats [begin, end) of the sum, along the canonical tree: into `into`, or, if that is empty
    /// and there is something to add, into memory that is valid until this thread's next call.
    std::span<const float> part(std::uint64_t begin, std::uint64_t end, std::span<float> into) const;
    bool intact() const;
  };

  explicit early_gradients(std::uint64_t floats)
      : floats_(floats) {}

  /// `slots` is a node of the tree over `slots_of_step`. What is of another step than before takes
  /// its place; what overlaps with other slots of the same step is left out.
  void add(const step_name& name, std::uint32_t slots_of_step, protocol::slot_range slots, gradient one);
  /// Whether more of the step can be applied than was asked for by begin().
  bool has_more() const;
  /// What can be applied now; it will be. Requires has_more().
  work begin(std::uint64_t revision);
  bool is_begun() const { return revision_.has_value(); }
  std::optional<std::uint64_t> revision() const { return revision_; }
  void clear();

private:
  std::uint64_t ready_from() const;

  std::uint64_t floats_;
  std::optional<step_name> name_;
  std::uint32_t slots_ = 0;
  std::map<protocol::slot_range, gradient> gradients_; ///< disjoint
  std::optional<std::uint64_t> revision_;              ///< with which the step was begun
  std::uint64_t begun_from_ = 0;
};

} // namespace dlrun::ps_shard
