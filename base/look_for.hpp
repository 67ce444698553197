/// Tells what is not there from what cannot be seen.
#pragma once

#include <dlrun/error.hpp>
#include <filesystem>
#include <fmt/core.h>
#include <system_error>

namespace dlrun::base {

/// Is there something of that name? A link counts as what it leads to. @returns system where that
/// cannot be seen.
inline result<bool> look_for(const std::filesystem::path& path) {
  std::error_code why;
  const bool is_there = std::filesystem::exists(path, why);
  if (why)
    return fail(error_code::system, fmt::format("cannot look for '{}': {}", path.string(), why.message()));
  return is_there;
}

} // namespace dlrun::base
