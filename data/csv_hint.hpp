/// Hints for words that a CSV file, or a job about it, does not know.
#pragma once

#include "base/nearest.hpp"
#include "base/utf8.hpp"

#include <fmt/format.h>
#include <string>
#include <vector>

namespace dlrun::data {

/// What to write instead of `word`, of a length that can be read.
inline std::string way_out(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t listed_max = 20;
  if (known.size() <= listed_max) return base::hint(word, known);
  return fmt::format("the nearest of {} is \"{}\"", known.size(),
                     base::printable(base::nearest(word, known)));
}

} // namespace dlrun::data
