/// Takes the space of a file before it is needed.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>

namespace dlrun::base {

/// Space for the first `bytes` of the file, as posix_fallocate(3) does. That gives up, and gives
/// back what it had, at any signal, even at one that stops the process and lets it go on (Ctrl-Z,
/// then fg): so it is asked for pieces, and asked again. @returns 0 or errno.
inline int reserve_bytes(int fd, std::uint64_t bytes) {
  constexpr std::uint64_t piece_bytes = std::uint64_t{2} << 20; // a huge page, and no longer than a moment
  for (std::uint64_t had = 0; had < bytes;) {
    const auto piece = std::min(piece_bytes, bytes - had);
    const int refused = ::posix_fallocate(fd, static_cast<off_t>(had), static_cast<off_t>(piece));
    if (refused == EINTR) continue;
    if (refused != 0) return refused;
    had += piece;
  }
  return 0;
}

} // namespace dlrun::base
