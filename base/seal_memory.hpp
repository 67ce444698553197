/// Makes shared memory unchangeable.
#pragma once

#include <cerrno>
#include <chrono>
#include <concepts>
#include <fcntl.h>
#include <thread>

namespace dlrun::base {

/// Adds `seals` (F_SEAL_*, of fcntl(2)) to a memfd. To F_SEAL_WRITE the kernel says EBUSY not only
/// while a writable mapping is left, but also while somebody holds a page, and that may be the
/// kernel itself, for a moment: then it is asked again, as long as `wait` says true. @returns 0 or
/// errno
int seal_memory(int fd, int seals, std::predicate auto wait) {
  while (::fcntl(fd, F_ADD_SEALS, seals) != 0) {
    const int refused = errno;
    if (refused != EBUSY || !wait()) return refused;
  }
  return 0;
}

/// The same, for five seconds.
inline int seal_memory(int fd, int seals) {
  using clock = std::chrono::steady_clock;
  return seal_memory(fd, seals, [end = clock::now() + std::chrono::seconds(5)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return clock::now() < end;
  });
}

} // namespace dlrun::base
