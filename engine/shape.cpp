#include "engine/shape.hpp"

namespace dlrun::engine {

std::string to_string(const shape& extents) {
  std::string text = "[";
  for (std::size_t i = 0; i < extents.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(extents[i]);
  return text + "]";
}

std::optional<std::int64_t> element_count(const shape& extents) {
  constexpr std::int64_t limit = std::int64_t{1} << 40;
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > limit / count) return std::nullopt;
    count *= extent;
  }
  return count;
}

} // namespace dlrun::engine
