/// Wording of errors that come from the operating system.
#pragma once

#include <cerrno>
#include <cstring>
#include <dlrun/error.hpp>

namespace dlrun::data {

/// "<what> <file>: <errno's text>" as error_code::system, or bad_data where the file the user named
/// does not exist or may not be read.
inline tl::unexpected<error> system_failure(const std::string& what, const std::string& file) {
  const int number = errno;
  const bool users_mistake =
      number == ENOENT || number == EACCES || number == ENOTDIR || number == ENAMETOOLONG;
  return fail(users_mistake ? error_code::bad_data : error_code::system,
              what + " " + file + ": " + std::strerror(number));
}

} // namespace dlrun::data
