/// Reads from files, which may give a part at a time.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unistd.h>

namespace dlrun::base {

/// What the file has from byte `offset` on, as pread(2) gives it, again and again, until `into` is
/// full or the file ends. @returns how many bytes; nothing when a part could not be read: errno
/// says why.
inline std::optional<std::size_t> read_at(int fd, std::span<std::byte> into, std::uint64_t offset) {
  std::size_t had = 0;
  while (had < into.size()) {
    const auto got = ::pread(fd, into.data() + had, into.size() - had, static_cast<off_t>(offset + had));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    had += static_cast<std::size_t>(got);
  }
  return had;
}

} // namespace dlrun::base
