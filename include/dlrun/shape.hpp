/// Shapes of tensors: extents, outermost first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlrun {

/// Extents of a tensor, outermost first, without the batch unless said otherwise. Images are
/// [channels, height, width].
using shape = std::vector<std::int64_t>;

/// As text: "[1, 28, 28]".
inline std::string to_string(const shape& extents) {
  std::string text = "[";
  for (std::size_t i = 0; i < extents.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(extents[i]);
  return text + "]";
}

/// Index of element `number` of a tensor, its elements counted row by row from 0.
inline shape element_index(const shape& extents, std::uint64_t number) {
  shape index(extents.size());
  for (std::size_t i = extents.size(); i-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(extents[i]);
    index[i] = static_cast<std::int64_t>(number % extent);
    number /= extent;
  }
  return index;
}

/// Product of the extents (1 for no extents); nothing when an extent is below 1 or the product is
/// above 2^40.
inline std::optional<std::int64_t> element_count(const shape& extents) {
  constexpr std::int64_t limit = std::int64_t{1} << 40;
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > limit / count) return std::nullopt;
    count *= extent;
  }
  return count;
}

} // namespace dlrun
