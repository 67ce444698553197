/// Turns errno into an error that says what was being done.
#pragma once

#include <cerrno>
#include <dlrun/error.hpp>
#include <fmt/core.h>
#include <string_view>
#include <system_error>

namespace dlrun::base {

/// error_code::system with "`what`: <text of `code`>". Call it before anything else can change
/// errno.
inline tl::unexpected<error> fail_errno(std::string_view what, int code = errno) {
  return fail(error_code::system, fmt::format("{}: {}", what, std::generic_category().message(code)));
}

} // namespace dlrun::base
