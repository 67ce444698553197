#include "actors/worker/slot_warnings.hpp"

namespace dlrun::worker {
namespace {

using protocol::slot_range;

template <class Slot>
std::vector<Slot> those_in(const std::vector<Slot>& all, step_id step, slot_range slots) {
  std::vector<Slot> some;
  for (const auto& one : all)
    if (one.step == step && slots.begin <= one.slot && one.slot < slots.end) some.push_back(one);
  return some;
}

} // namespace

protocol::parked_slots_list slot_warnings::parked_in(step_id step, slot_range slots) const {
  return those_in(parked_, step, slots);
}

std::vector<protocol::suspect_slot> slot_warnings::suspects_in(step_id step, slot_range slots) const {
  return those_in(suspects_, step, slots);
}

compute_gradient slot_warnings::order_of(timeline_id timeline, step_id step, slot_range slots) const {
  compute_gradient order{timeline, step, slots, parked_in(step, slots), suspects_in(step, slots)};
  const step_id next{step.value + 1};
  for (const auto& one : parked_in(next, slots)) order.not_ahead.push_back(one.slot);
  for (const auto& one : suspects_in(next, slots)) order.not_ahead.push_back(one.slot);
  return order;
}

} // namespace dlrun::worker
