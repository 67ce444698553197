#include "tests/simulation/held_gradients.hpp"

#include "tests/simulation/world.hpp"

namespace dlrun::simulation {

std::optional<held_gradient> held_gradients::map(const gradient_push& what) const {
  if (what.memory->gone) return std::nullopt;
  const auto& buffer = what.memory->buffers.at(what.buffer);
  if (!buffer.used || buffer.sequence != what.push.tensor_sequence) return std::nullopt;
  held_gradient mapped;
  mapped.content = buffer.content.at(shard_.value);
  mapped.times.resize(world_.job().slots);
  for (auto slot = what.push.slots.begin; slot < what.push.slots.end; ++slot.value)
    mapped.times.at(slot.value) = 1;
  mapped.memory = what.memory;
  mapped.buffer = what.buffer;
  mapped.sequence = buffer.sequence;
  return mapped;
}

ps_shard::value_id held_gradients::add(held_gradient mapped) {
  const ps_shard::value_id id{next_value_++};
  values_.emplace(id, std::move(mapped));
  return id;
}

/// A worker uses a buffer again when every newest shard has committed its step, or when it has
/// adopted a newer timeline: who reads it after that is not the newest start or not on the newest
/// timeline, notices it by the sequence, and must not publish what it made of it.
const held_gradient* held_gradients::use(ps_shard::value_id which, timeline_id timeline) {
  const auto at = values_.find(which);
  if (at == values_.end()) broken("values", "{} uses value {} that it does not hold", process_.name(), which);
  const auto& one = at->second;
  if (!one.memory || one.memory->buffers.at(one.buffer).sequence == one.sequence) return &one;
  const bool is_behind = world_.journal().timeline() > timeline;
  const bool may_be_early = world_.happened().lossy_power_cut || world_.happened().disk_lost ||
                            world_.plan().durability == protocol::durability::snapshots ||
                            world_.plan().damage > 0;
  if (!process_.taken_for_dead && !is_behind && !may_be_early)
    broken("values", "{} reads a gradient buffer that its worker uses for another step", process_.name());
  world_.kill(process_, "reads a buffer that is used for another step");
  return nullptr;
}

void held_gradients::combine(const ps_shard::combine& order, timeline_id timeline) {
  const auto* left = use(order.left, timeline);
  const auto* right = left == nullptr ? nullptr : use(order.right, timeline);
  if (right == nullptr) return;
  held_gradient made;
  made.content = sum(left->content, right->content);
  made.times = left->times;
  for (std::size_t i = 0; i < made.times.size(); ++i) made.times[i] += right->times[i];
  values_.erase(order.left);
  values_.erase(order.right);
  if (!values_.emplace(order.into, std::move(made)).second)
    broken("values", "value {} exists twice", order.into);
}

void held_gradients::make_zero(const ps_shard::make_zero& order) {
  held_gradient zero;
  zero.content = zero_gradient();
  zero.times.resize(world_.job().slots);
  zero.times.at(order.of.slot.value) = 1;
  values_[order.into] = std::move(zero);
}

void held_gradients::release(const ps_shard::release& order) {
  if (values_.erase(order.value) == 0)
    broken("values", "{} releases value {} twice", process_.name(), order.value);
}

} // namespace dlrun::simulation
