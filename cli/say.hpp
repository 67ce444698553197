/// Output that a training does not depend on.
#pragma once

#include "cli/standard_streams.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <utility>

namespace dlrun::cli {

/// Prints, as put() does: a training does not depend on it.
template <class... Values>
void say(std::FILE* to, fmt::format_string<Values...> text, Values&&... values) {
  put(to, fmt::format(text, std::forward<Values>(values)...));
}

} // namespace dlrun::cli
