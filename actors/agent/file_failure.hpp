/// What could not be done with a file that comes from another host, or goes there.
#pragma once

#include "base/os_error.hpp"

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>

namespace dlrun::agent {

/// errno as "cannot `what` `path`"; disk_full where that is why.
inline tl::unexpected<error> fail_to(const char* what, const std::filesystem::path& path) {
  const auto code = errno;
  auto failed = base::fail_errno(fmt::format("cannot {} {}", what, path.string()), code);
  if (base::is_disk_full(code)) failed.value().code = error_code::disk_full;
  return failed;
}

} // namespace dlrun::agent
