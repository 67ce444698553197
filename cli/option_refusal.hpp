/// What is said of an option whose value cannot be.
#pragma once

#include "base/utf8.hpp"

#include <dlrun/error.hpp>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace dlrun::cli {

/// bad_usage, naming option, value and way out.
inline tl::unexpected<error> refuse_option(std::string_view option, const std::string& value,
                                           std::string_view way_out) {
  return fail(error_code::bad_usage, fmt::format("{} '{}': {}", option, base::printable(value), way_out));
}

} // namespace dlrun::cli
