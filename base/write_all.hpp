/// Writes to descriptors that may take a part at a time.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <unistd.h>

namespace dlrun::base {

/// All of `bytes`, as write(2) does, again and again. Blocks as `fd` does. @returns false when a
/// part could not be written: errno says why.
inline bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// The same into a file, from its byte `offset` on, as pwrite(2) does.
inline bool write_all_at(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const auto written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return true;
}

} // namespace dlrun::base
