#include "engine/block_updates.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::engine {
namespace {

/// A range of more floats (a version of 16 MiB, and three to six such vectors are gone through in a
/// step) finds none of them in the caches at the next step, and no worker finds all of a version
/// there.
constexpr std::uint64_t streamed_above = std::uint64_t{4} << 20;

} // namespace

block_updates::block_updates(const parameter_layout& layout, const shard_range& range,
                             std::vector<update_rule> rules)
    : rules_{std::move(rules)}
    , streams_{range.size > streamed_above} {
  DLRUN_CHECK(!rules_.empty(), "blocks without an update rule");
  const auto& optimizer = rules_.front().optimizer();
  for (const auto& rule : rules_)
    DLRUN_CHECK(rule.optimizer().state_planes() == optimizer.state_planes(),
                "revision {} of the specification has an optimizer with another state",
                &rule - rules_.data());
  for (auto index = range.first_block; index < range.last_block; ++index) {
    const auto& block = layout.blocks()[index];
    const auto state =
        block.kind == tensor_kind::parameter ? block.size * optimizer.state_floats_per_parameter() : 0;
    blocks_.push_back(
        {block, block.offset - range.offset, state_floats_, state, layout.tensors()[block.tensor].momentum});
    state_floats_ += state;
    image_floats_ += block.size + state;
  }
}

void block_updates::start_state(std::span<float> state) const {
  for (const auto& owned : blocks_)
    rules_.front().optimizer().start_state(state.subspan(owned.state_offset, owned.state_floats));
}

bool block_updates::update(const owned_block& owned, step_id step, const step_shape& shape,
                           std::span<const float> sums, std::span<const float> in, std::span<float> out,
                           const kernels::cpu::update_state& state) const {
  const auto before = in.subspan(owned.offset, owned.block.size);
  const auto after = out.subspan(owned.offset, owned.block.size);
  if (shape.records == 0) { // all of it was left out: there is no mean, and nothing changes
    if (before.data() != after.data()) std::ranges::copy(before, after.begin());
    const auto own = state.subspan(owned.state_offset, owned.state_floats);
    if (own.before.data() != own.after.data()) std::ranges::copy(own.before, own.after.begin());
    return true;
  }
  switch (owned.block.kind) {
  case tensor_kind::parameter:
    return rules_.at(shape.revision)
        .update({step, shape.records, shape.norm, streams_}, sums, before, after,
                state.subspan(owned.state_offset, owned.state_floats));
  case tensor_kind::buffer:
    return update_buffer(1.0F / static_cast<float>(shape.slots), owned.momentum, sums, before, after);
  case tensor_kind::metric: std::ranges::fill(after, 0.0F); break;
  }
  return true;
}

} // namespace dlrun::engine
