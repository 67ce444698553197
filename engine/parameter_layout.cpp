#include "engine/parameter_layout.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::engine {
namespace {

std::uint64_t round_up(std::uint64_t size) {
  constexpr std::uint64_t step = parameter_layout::tensor_alignment;
  return (size + step - 1) / step * step;
}

/// The block at which the prefix of the flat vector comes closest to `target` floats; the lower one
/// of equals.
std::uint32_t nearest_cut(const std::vector<block>& blocks, std::uint64_t flat_size, std::uint64_t target) {
  const auto start = [&](std::size_t b) { return b < blocks.size() ? blocks[b].offset : flat_size; };
  const auto above = std::ranges::lower_bound(blocks, target, {}, &block::offset);
  const auto upper = static_cast<std::size_t>(above - blocks.begin());
  if (upper == 0) return 0;
  const bool lower_is_near = target - start(upper - 1) <= start(upper) - target;
  return static_cast<std::uint32_t>(lower_is_near ? upper - 1 : upper);
}

} // namespace

parameter_layout::parameter_layout(std::vector<tensor_info> tensors, std::uint64_t metric_floats)
    : tensors_(std::move(tensors)) {
  DLRUN_CHECK(metric_floats <= metric_floats_max, "{} floats of metrics, of at most {}", metric_floats,
              metric_floats_max);
  const auto metrics_size = std::max(metrics_size_min, round_up(first_metric + metric_floats));
  tensors_.push_back({"metrics", {static_cast<std::int64_t>(metrics_size)}, tensor_kind::metric});
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    auto& tensor = tensors_[t];
    const auto size = element_count(tensor.extents);
    DLRUN_CHECK(size.has_value(), "tensor {} has the impossible shape {}", tensor.name,
                to_string(tensor.extents));
    tensor.offset = flat_size_;
    tensor.size = static_cast<std::uint64_t>(*size);
    append_blocks(t);
    flat_size_ += round_up(tensor.size);
  }
}

void parameter_layout::append_blocks(std::uint32_t tensor) {
  const auto& info = tensors_[tensor];
  for (std::uint64_t begin = 0; begin < info.size; begin += block_size)
    blocks_.push_back({tensor, info.offset + begin, std::min(block_size, info.size - begin), info.kind});
}

const tensor_info* parameter_layout::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors_, name, &tensor_info::name);
  return found == tensors_.end() ? nullptr : &*found;
}

std::vector<shard_range> place_blocks(const parameter_layout& layout, std::uint32_t ps_shards) {
  DLRUN_CHECK(ps_shards > 0, "blocks need a PS shard to live on");
  const auto& blocks = layout.blocks();
  const auto count = static_cast<std::uint32_t>(blocks.size());
  const auto start = [&](std::uint32_t b) { return b < count ? blocks[b].offset : layout.flat_size(); };
  std::vector<shard_range> ranges;
  std::uint32_t first = 0;
  for (std::uint32_t s = 1; s <= ps_shards; ++s) {
    std::uint32_t last = nearest_cut(blocks, layout.flat_size(), layout.flat_size() * s / ps_shards);
    // Every shard gets a block, and leaves one for each shard behind it, while there are enough.
    const std::uint32_t behind = std::min(count, ps_shards - s);
    last = std::clamp(last, std::min(first + 1, count), std::max(count - behind, std::min(first + 1, count)));
    if (s == ps_shards) last = count;
    ranges.push_back({first, last, start(first), start(last) - start(first)});
    first = last;
  }
  return ranges;
}

std::size_t parameter_blocks(const parameter_layout& layout, const shard_range& range) {
  std::size_t count = 0;
  for (auto index = range.first_block; index < range.last_block; ++index)
    if (layout.blocks()[index].kind == tensor_kind::parameter) ++count;
  return count;
}

} // namespace dlrun::engine
