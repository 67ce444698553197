/// Threads that share a loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <sched.h>
#include <thread>
#include <vector>

namespace dlrun::base {

/// A fixed number of threads, the caller's included; fewer when the system has no more. Between
/// loops the others sleep: they spin no core away. Used by one caller at a time.
///
/// The others may run on any core that this process may use but the caller's. Left to itself Linux
/// wakes a thread where it ran last or where its waker runs, and looks no further when the cores
/// are mostly busy: then they all take turns on the caller's core while another one stands idle.
class thread_team {
public:
  /// `threads` >= 1; with 1 there is only the caller.
  explicit thread_team(unsigned threads);
  ~thread_team();
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  /// Calls body(i) once for each i in [0, count), on any thread and in any order, and returns when
  /// all calls have. `body` must not throw.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body);

private:
  void help();
  void take_part();
  void keep_off(int core);

  // Of the loop under way. A call is begun by taking one off `left_`; as long as it has not ended,
  // neither has the loop, so that the other two stay what they are.
  std::atomic<std::int32_t> left_{0};
  std::atomic<std::int32_t> ended_{0};
  std::int32_t count_ = 0;
  const std::function<void(std::size_t)>* body_ = nullptr;

  std::atomic<bool> stopping_{false};
  cpu_set_t cores_{};    ///< that this process may use
  int caller_core_ = -1; ///< that the helpers keep off; -1 = none yet
  std::vector<std::thread> helpers_;
};

/// How many threads each of `parts` equal users of this machine may have, at most `most`.
unsigned fair_threads(std::size_t parts, unsigned most);

} // namespace dlrun::base
