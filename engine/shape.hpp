/// Shapes of tensors: extents, outermost first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::engine {

/// Extents, outermost first; without the batch unless said otherwise. Images are [channels, height, width].
using shape = std::vector<std::int64_t>;

/// "[1, 28, 28]".
std::string to_string(const shape& extents);

/// Product of the extents (1 for no extents); nothing when an extent is below 1 or the product is beyond
/// 2^40.
std::optional<std::int64_t> element_count(const shape& extents);

} // namespace dlrun::engine
