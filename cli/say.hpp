/// Output that a training does not depend on.
#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <utility>

namespace dlrun::cli {

/// Prints. What cannot be written, since the disk is full or nobody reads it any more, is lost; fmt::print()
/// would throw.
template <class... Values>
void say(std::FILE* to, fmt::format_string<Values...> text, Values&&... values) {
  static_cast<void>(std::fputs(fmt::format(text, std::forward<Values>(values)...).c_str(), to));
}

} // namespace dlrun::cli
