/// Turns errno into an error that says what was being done.
#pragma once

#include <cerrno>
#include <dlrun/error.hpp>
#include <fmt/core.h>
#include <string_view>
#include <system_error>

namespace dlrun::base {

/// Of a write that failed: has the disk no room, or the user's quota of it?
inline bool is_disk_full(int code) { return code == ENOSPC || code == EDQUOT; }

/// error_code::system with "`what`: <text of `code`>". Call it before anything else can change
/// errno.
inline tl::unexpected<error> fail_errno(std::string_view what, int code = errno) {
  return fail(error_code::system, fmt::format("{}: {}", what, std::generic_category().message(code)));
}

} // namespace dlrun::base
