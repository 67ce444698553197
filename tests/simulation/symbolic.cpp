#include "tests/simulation/symbolic.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

enum class kind : std::uint64_t { initial = 1, gradient, sum, update, whole };

value hashed(kind what, std::initializer_list<std::uint64_t> of) {
  auto h = mix(static_cast<std::uint64_t>(what));
  for (const auto one : of) h = mix(h ^ one);
  return h;
}

} // namespace

std::uint64_t job_shape::records_of(step_id step, protocol::slot_range range) const {
  std::uint64_t records = 0;
  for (auto slot = range.begin; slot < range.end; ++slot.value) records += records_of(step, slot);
  return records;
}

std::uint64_t job_shape::records_of(step_id step) const {
  return records_of(step, protocol::make_slot_range(0, slots_of(step)));
}

value initial(ps_shard_id shard) { return hashed(kind::initial, {shard.value}); }
value slot_gradient(ps_shard_id shard, step_id step, slot_id slot, value whole_vector) {
  return hashed(kind::gradient, {shard.value, step.value, slot.value, whole_vector});
}
value sum(value left, value right) {
  return hashed(kind::sum, {std::min(left, right), std::max(left, right)});
}
value update(value parameters, value root) { return hashed(kind::update, {parameters, root}); }
value whole(const std::vector<value>& parts) {
  auto h = hashed(kind::whole, {parts.size()});
  for (const auto part : parts) h = hashed(kind::whole, {h, part});
  return h;
}

value node_gradient(ps_shard_id shard, step_id step, protocol::slot_range node, value whole_vector) {
  if (node.size() == 1) return slot_gradient(shard, step, node.begin, whole_vector);
  const auto [left, right] = protocol::reduction_tree::children(node);
  return sum(node_gradient(shard, step, left, whole_vector), node_gradient(shard, step, right, whole_vector));
}

oracle::oracle(const job_shape& shape) {
  std::vector<value> now;
  for (std::uint32_t shard = 0; shard < shape.ps_shards; ++shard) now.push_back(initial({shard}));
  versions_.push_back(now);
  for (step_id step{0}; step.value < shape.steps; ++step.value) {
    const auto from = whole(now);
    const auto root = protocol::make_slot_range(0, shape.slots_of(step));
    for (std::uint32_t shard = 0; shard < shape.ps_shards; ++shard)
      now[shard] = update(now[shard], node_gradient({shard}, step, root, from));
    versions_.push_back(now);
  }
}

} // namespace dlrun::simulation
