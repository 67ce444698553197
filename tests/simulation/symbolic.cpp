#include "tests/simulation/symbolic.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

enum class kind : std::uint64_t { initial = 1, gradient, sum, update, whole, zero, norm, norms };

value hashed(kind what, std::initializer_list<std::uint64_t> of) {
  auto h = mix(static_cast<std::uint64_t>(what));
  for (const auto one : of) h = mix(h ^ one);
  return h;
}

} // namespace

course course_of(const protocol::history& history, std::uint64_t steps) {
  course trained;
  for (step_id step{0}; step.value < steps; ++step.value)
    trained.revisions.push_back(revision_at(history, step));
  trained.parked = parked_slots(history);
  return trained;
}

value initial(ps_shard_id shard) { return hashed(kind::initial, {shard.value}); }
value slot_gradient(ps_shard_id shard, step_id step, slot_id slot, value whole_vector,
                    const std::vector<std::uint32_t>& left_out) {
  auto h = hashed(kind::gradient, {shard.value, step.value, slot.value, whole_vector});
  for (const auto record : left_out) h = hashed(kind::gradient, {h, record});
  return h;
}
value zero_gradient() { return hashed(kind::zero, {}); }
value sum(value left, value right) {
  return hashed(kind::sum, {std::min(left, right), std::max(left, right)});
}
value norm_of(value root) { return hashed(kind::norm, {root}); }
value combine(const std::vector<std::vector<std::uint64_t>>& norms) {
  auto h = hashed(kind::norms, {norms.size()});
  for (const auto& of_shard : norms)
    for (const auto one : of_shard) h = hashed(kind::norms, {h, one});
  return h;
}
value update(value parameters, value root, value coupled, std::uint64_t revision) {
  return hashed(kind::update, {parameters, root, coupled, revision});
}
value whole(const std::vector<value>& parts) {
  auto h = hashed(kind::whole, {parts.size()});
  for (const auto part : parts) h = hashed(kind::whole, {h, part});
  return h;
}

value node_gradient(ps_shard_id shard, step_id step, protocol::slot_range node, value whole_vector,
                    const protocol::parked_slots_list& parked) {
  if (node.size() == 1)
    return is_parked(parked, step, node.begin) ? zero_gradient()
                                               : slot_gradient(shard, step, node.begin, whole_vector,
                                                               parked_records(parked, step, node.begin));
  const auto [left, right] = protocol::reduction_tree::children(node);
  return sum(node_gradient(shard, step, left, whole_vector, parked),
             node_gradient(shard, step, right, whole_vector, parked));
}

const oracle::versions& oracle::versions_of(const course& trained) {
  auto& all = runs_[trained];
  if (!all.empty()) return all;
  std::vector<value> now;
  for (std::uint32_t shard = 0; shard < shape_.ps_shards; ++shard) now.push_back(initial({shard}));
  all.push_back(now);
  for (step_id step{0}; step.value < shape_.steps; ++step.value) {
    const auto from = whole(now);
    const auto node = protocol::make_slot_range(0, shape_.slots_of(step));
    std::vector<value> roots;
    std::vector<std::vector<std::uint64_t>> norms;
    for (std::uint32_t shard = 0; shard < shape_.ps_shards; ++shard) {
      roots.push_back(node_gradient({shard}, step, node, from, trained.parked));
      norms.push_back({norm_of(roots.back())});
    }
    const auto coupled = shape_.couples ? combine(norms) : 0;
    for (std::uint32_t shard = 0; shard < shape_.ps_shards; ++shard)
      now[shard] = update(now[shard], roots[shard], coupled, trained.revisions[step.value]);
    all.push_back(now);
  }
  return all;
}

std::uint64_t oracle::records(const course& trained, version_id version) const {
  std::uint64_t records = 0;
  for (step_id step{0}; step < step_from(version); ++step.value)
    for (slot_id slot{0}; slot.value < shape_.slots_of(step); ++slot.value)
      records += records_left(trained.parked, step, slot, shape_.records_of(step, slot));
  return records;
}

} // namespace dlrun::simulation
