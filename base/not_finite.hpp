/// Floats that are no numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace dlrun::base {

struct not_finite {
  std::size_t place = 0;
  std::string text; ///< "nan", "inf" or "-inf"
};

/// The first of `values` that is NaN or infinite.
inline std::optional<not_finite> find_not_finite(std::span<const float> values) {
  const auto wrong = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  if (wrong == values.end()) return std::nullopt;
  const auto* const text = std::isnan(*wrong) ? "nan" : *wrong > 0 ? "inf" : "-inf";
  return not_finite{static_cast<std::size_t>(wrong - values.begin()), text};
}

} // namespace dlrun::base
