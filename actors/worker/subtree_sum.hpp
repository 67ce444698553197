/// The sum of the gradients of a run of slots, in the order of the reduction tree.
#pragma once

#include "actors/protocol/reduction_tree.hpp"
#include "engine/computer.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace dlrun::worker {

/// Adds up on the computer: the host sees no float of it. Keeps the memory of right siblings from
/// one sum to the next. Used by the computer's thread.
class subtree_sum {
public:
  using progress = engine::computer::progress;
  /// Overwrites the vector with the gradient of one slot, and tells how much of it is final.
  using slot_gradient = std::function<result<void>(slot_id, engine::computer_vector&, const progress&)>;

  /// Of gradients of `floats`. `computer` must outlive it.
  subtree_sum(engine::computer& computer, std::size_t floats);

  /// Overwrites `out` with the sum over `slots`, a node of the tree. `tell` (may be null) hears
  /// which floats of the sum are final, as that of one slot does. @returns the first error of
  /// `compute`; limit_exceeded.
  result<void> run(protocol::slot_range slots, const slot_gradient& compute, engine::computer_vector& out,
                   const progress& tell) {
    return run(slots, compute, out, 0, tell);
  }

private:
  result<void> run(protocol::slot_range slots, const slot_gradient& compute, engine::computer_vector& out,
                   std::size_t depth, const progress& tell);
  result<engine::computer_vector*> beside(std::size_t depth);

  engine::computer& computer_;
  std::size_t floats_;
  std::vector<std::unique_ptr<engine::computer_vector>> beside_; ///< right siblings, by depth
};

} // namespace dlrun::worker
