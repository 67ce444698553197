/// Memory for a block of floats that is summed and used at once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace dlrun::ps_shard {

/// `size` floats of undefined content, valid until the same thread asks for the same `depth` again:
/// sums that wait for each other take a depth each. Of a block, they stay in the core's own cache.
inline std::span<float> block_scratch(std::size_t depth, std::size_t size) {
  thread_local std::vector<std::vector<float>> blocks;
  if (blocks.size() <= depth) blocks.resize(depth + 1);
  if (blocks[depth].size() < size) blocks[depth].resize(size);
  return std::span{blocks[depth]}.first(size);
}

} // namespace dlrun::ps_shard
