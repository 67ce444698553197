/// A loop that threads share. Not installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace dlrun::detail {

/// Calls body(i) once for each i in [0, count), in no particular order, on up to `threads` threads
/// including the caller's, or fewer when the system has no more. Each thread has a body of its own,
/// from make_body(); neither may throw. Returns when all calls have returned.
template <class MakeBody>
void parallel_for(std::size_t count, unsigned threads, const MakeBody& make_body) {
  std::atomic<std::size_t> next = 0;
  const auto take_part = [&] {
    auto body = make_body();
    for (auto i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::jthread> helpers;
  try {
    while (helpers.size() + 1 < threads) helpers.emplace_back(take_part);
  } catch (const std::system_error&) { // those that there are do it
  }
  take_part();
}

} // namespace dlrun::detail
