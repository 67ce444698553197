/// Output that a training does not depend on.
#pragma once

#include "cli/log_output.hpp"
#include "cli/standard_streams.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <utility>

namespace dlrun::cli {

/// Prints a text that has its newline, as put_text() does: a training does not depend on it.
template <class... Values>
void say(std::FILE* to, fmt::format_string<Values...> text, Values&&... values) {
  put_text(to, fmt::format(text, std::forward<Values>(values)...));
}

} // namespace dlrun::cli
