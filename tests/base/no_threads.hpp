/// A process that gets no more threads, as where a container may have no more (pids.max).
#pragma once

#include <cstdlib>
#include <sys/resource.h>
#include <unistd.h>

namespace dlrun::test {

/// For a process of its own (EXPECT_EXIT): from here on it gets no other thread. Root may have any
/// number, so it becomes nobody.
inline void take_threads_away() {
  constexpr uid_t nobody = 65534;
  constexpr rlimit one{1, 1}; // the one that calls this
  if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) std::_Exit(2);
  if (::setrlimit(RLIMIT_NPROC, &one) != 0) std::_Exit(2);
}

} // namespace dlrun::test
