/// What a worker is to compute of each step: its lease, and what is left of that when it leaves
/// (rules R5, R33).
#pragma once

#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/reduction_tree.hpp"
#include "actors/worker/kept_gradients.hpp"
#include "actors/worker/slot_warnings.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace dlrun::worker {

/// Pure: the worker's share of each step. A worker that was asked to leave begins no further step,
/// but finishes its share of the step that it has begun: so no step waits until the others notice,
/// and the step gets complete even if there are no others.
class work_share {
public:
  explicit work_share(std::function<std::uint32_t(step_id)> slots_of_step)
      : slots_of_step_(std::move(slots_of_step)) {}

  /// False for a lease that is not newer than the one it has.
  bool take(const protocol::lease& lease) {
    if (lease_ && std::pair(lease.dispatcher, lease.sequence) <= order_of_lease()) return false;
    lease_ = lease;
    return true;
  }
  /// Dispatcher and sequence of the newest lease; 0 before the first.
  std::pair<incarnation, std::uint64_t> order_of_lease() const {
    return lease_ ? std::pair(lease_->dispatcher, lease_->sequence)
                  : std::pair(incarnation{}, std::uint64_t{0});
  }

  /// Whether it has slots of the step that nobody else has.
  bool has_part_of(step_id step) const {
    return lease_ && !lease_->on_trial && !lease_->slots.empty() &&
           lease_->slots.begin.value < slots_of_step_(step);
  }
  /// No share of it is more nodes than that.
  std::uint32_t nodes_max(step_id step) const {
    return protocol::reduction_tree(slots_of_step_(step)).cover_max();
  }
  /// Slots of its lease.
  std::uint32_t leased() const { return lease_ && !lease_->slots.empty() ? lease_->slots.size() : 0; }

  /// It is to leave. `begun`: the step in which it has begun; nothing when there is none.
  void leave(std::optional<step_id> begun) {
    is_leaving_ = true;
    last_step_ = begun;
    if (lease_) last_slots_ = lease_->slots;
  }
  bool is_leaving() const { return is_leaving_; }
  /// R34: whether it may compute what others are to. Who has no lease may compute nothing (R16a).
  bool may_help() const { return lease_.has_value() && !is_leaving_; }
  /// It goes to another timeline: what it has begun is void.
  void drop_begun() { last_step_.reset(); }

  /// The next node of `step` that it has to compute and does not keep.
  std::optional<protocol::slot_range> next_missing(step_id step, const kept_gradients& kept,
                                                   const slot_warnings& warnings) const {
    for (const auto& node : protocol::reduction_tree(slots_of_step_(step)).cover(slots_of(step)))
      if (const auto missing = kept.first_missing(step, node, warnings.parked_in(step, node))) return missing;
    return std::nullopt;
  }

private:
  protocol::slot_range slots_of(step_id step) const {
    if (is_leaving_) return last_step_ == step ? last_slots_ : protocol::slot_range{};
    return lease_ ? lease_->slots : protocol::slot_range{};
  }

  std::function<std::uint32_t(step_id)> slots_of_step_;
  std::optional<protocol::lease> lease_;
  bool is_leaving_ = false;
  std::optional<step_id> last_step_;
  protocol::slot_range last_slots_{};
};

} // namespace dlrun::worker
