#include "actors/ps_shard/early_gradients.hpp"

#include "actors/ps_shard/block_scratch.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

using protocol::reduction_tree;
using protocol::slot_range;

/// Sums along the tree, a part of the floats at a time.
class tree_sum {
public:
  tree_sum(const early_gradients::work& work, std::uint64_t begin, std::uint64_t end)
      : work_(work)
      , begin_(begin)
      , size_(end - begin) {}

  /// Into `into`, unless the gradient of `slots` is there as it is. `depth` counts the sums that
  /// wait for this one.
  std::span<const float> of(slot_range slots, std::span<float> into, std::size_t depth) const {
    if (const auto found = work_.gradients.find(slots); found != work_.gradients.end())
      return found->second.floats.subspan(begin_, size_);
    const auto [left, right] = reduction_tree::children(slots);
    const auto first = of(left, into, depth);
    const auto second = of(right, block_scratch(depth, size_), depth + 1);
    kernels::cpu::add(first, second, into);
    return into;
  }

private:
  const early_gradients::work& work_;
  std::uint64_t begin_;
  std::uint64_t size_;
};

} // namespace

std::span<const float> early_gradients::work::part(std::uint64_t begin, std::uint64_t end,
                                                   std::span<float> into) const {
  const tree_sum sum{*this, begin, end};
  return sum.of({{0}, {slots}}, into.empty() ? block_scratch(0, end - begin) : into, 1);
}

bool early_gradients::work::intact() const {
  return std::ranges::all_of(gradients, [](const auto& entry) { return entry.second.is_intact(); });
}

void early_gradients::add(const step_name& name, std::uint32_t slots_of_step, slot_range slots,
                          gradient one) {
  DLRUN_CHECK(one.floats.size() == floats_, "a gradient of {} floats, not {}", one.floats.size(), floats_);
  if (name_ != name) {
    clear();
    name_ = name;
    slots_ = slots_of_step;
  }
  for (const auto& [held, other] : gradients_)
    if (held != slots && held.begin < slots.end && slots.begin < held.end) return;
  const auto found = gradients_.find(slots);
  if (found == gradients_.end())
    gradients_.emplace(slots, std::move(one));
  else if (one.from < found->second.from)
    found->second = std::move(one);
}

/// The last of those that cover the step; the end while they do not.
std::uint64_t early_gradients::ready_from() const {
  std::uint64_t from = 0;
  slot_id covered{0};
  for (const auto& [slots, one] : gradients_) {
    if (slots.begin != covered) return floats_;
    covered = slots.end;
    from = std::max(from, one.from);
  }
  return covered.value == slots_ ? from : floats_;
}

bool early_gradients::has_more() const {
  const auto from = ready_from();
  return from > 0 && from < (is_begun() ? begun_from_ : floats_);
}

early_gradients::work early_gradients::begin(std::uint64_t revision) {
  DLRUN_CHECK(has_more(), "there is nothing to begin with");
  revision_ = revision;
  begun_from_ = ready_from();
  return {begun_from_, slots_, gradients_};
}

void early_gradients::clear() {
  gradients_.clear();
  revision_.reset();
  name_.reset();
  slots_ = 0;
  begun_from_ = 0;
}

} // namespace dlrun::ps_shard
