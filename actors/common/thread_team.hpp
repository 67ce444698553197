/// Threads that share a loop.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dlrun::common {

/// A fixed number of threads, the caller's included. Between loops the others sleep: they spin no core away.
/// Used by one caller at a time.
class thread_team {
public:
  /// `threads` >= 1; with 1 there is only the caller.
  explicit thread_team(unsigned threads);
  ~thread_team();
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  /// Calls body(i) once for each i in [0, count), on any thread and in any order, and returns when all calls
  /// have. `body` must not throw.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body);

private:
  void help();
  void take_part(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(std::size_t)>* body_ = nullptr; ///< of the loop under way
  std::size_t next_ = 0, count_ = 0, running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> helpers_;
};

/// How many threads each of `parts` equal users of this machine may have, at most `most`.
unsigned fair_threads(std::size_t parts, unsigned most);

} // namespace dlrun::common
