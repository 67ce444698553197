/// Work on several threads whose results are taken in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace dlrun::inference {

/// compute_in_order() on the calling thread alone.
template <class Value>
result<void> compute_here(std::uint64_t count,
                          const std::function<result<Value>(std::size_t, std::uint64_t)>& compute,
                          const std::function<result<void>(std::uint64_t, Value&&)>& take) {
  for (std::uint64_t n = 0; n < count; ++n) {
    auto made = compute(0, n);
    if (!made) return tl::unexpected(made.error());
    if (auto taken = take(n, std::move(*made)); !taken) return taken;
  }
  return {};
}

/// Calls `compute(thread, n)` for each n below `count` on `threads` (at least 1) threads, and
/// `take(n, value)` with what it returned on the calling thread, n by n. With 1 thread the calling
/// one does both; otherwise at most 4 results a thread wait to be taken. There are fewer threads
/// when the system has no more. After an error nothing more is begun.
/// @returns the first error in the order of n.
template <class Value>
result<void> compute_in_order(std::uint64_t count, std::size_t threads,
                              const std::function<result<Value>(std::size_t, std::uint64_t)>& compute,
                              const std::function<result<void>(std::uint64_t, Value&&)>& take) {
  if (threads == 1) return compute_here<Value>(count, compute, take);
  constexpr std::uint64_t waiting_max = 4;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, result<Value>> done;
  std::uint64_t next = 0;
  std::uint64_t taken = 0;
  bool stopped = false;
  const auto work = [&](std::size_t thread) {
    std::unique_lock lock{mutex};
    for (;;) {
      changed.wait(lock, [&] { return stopped || next == count || next < taken + threads * waiting_max; });
      if (stopped || next == count) return;
      const auto own = next++;
      lock.unlock();
      auto made = compute(thread, own);
      lock.lock();
      done.emplace(own, std::move(made));
      changed.notify_all();
    }
  };
  std::vector<std::jthread> pool; // each ends after what it has in hand
  try {
    for (std::size_t thread = 0; thread < threads; ++thread) pool.emplace_back(work, thread);
  } catch (const std::system_error&) { // those that there are do it
    if (pool.empty()) return compute_here<Value>(count, compute, take);
  }
  result<void> outcome;
  for (std::uint64_t n = 0; n < count && outcome; ++n) {
    std::unique_lock lock{mutex};
    changed.wait(lock, [&] { return done.contains(n); });
    auto made = std::move(done.extract(n).mapped());
    lock.unlock();
    outcome = made ? take(n, std::move(*made)) : tl::unexpected(made.error());
    lock.lock();
    taken = n + 1;
    changed.notify_all();
  }
  const std::scoped_lock lock{mutex};
  stopped = true;
  changed.notify_all();
  return outcome;
}

} // namespace dlrun::inference
