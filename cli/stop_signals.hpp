/// The signals by which a user ends what a command does.
#pragma once

#include "base/unique_fd.hpp"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace dlrun::cli {

/// Of SIGINT and SIGTERM: those that come so soon after the first are one wish. A terminal that
/// closes may tell it more than once, and so does timeout(1), which tells a process and its group;
/// a person who presses Ctrl-C again means it.
inline constexpr auto same_wish = std::chrono::milliseconds(500);

/// Takes over SIGINT, SIGTERM and SIGHUP as long as it lives; one a process. By a handler, and no
/// signalfd: libraries have threads already (RocksDB's, of a run that is resumed), which do not
/// block what the main thread blocks, and would end the process by it. What was ignored stays
/// ignored: nohup, a shell's background job. A thread of its own waits for them, so that a second
/// Ctrl-C also ends a command that takes none, since it computes or waits for what computes: the
/// process ends at once with exit code 130 if the second is not taken within 2 s.
class stop_signals {
public:
  stop_signals();
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;
  ~stop_signals();

  /// Whether one came that next() has not told. Changes nothing.
  bool has_come() const;
  /// Takes one that came. @returns its number
  std::optional<int> next();
  /// The same, of one that comes within `patience`; returns when it comes.
  std::optional<int> wait(std::chrono::milliseconds patience);

private:
  void watch();
  bool take_in(std::chrono::steady_clock::time_point now);
  std::optional<int> take(); ///< mutex_ is held

  sigset_t handled_{};
  sigset_t mask_before_{};
  base::unique_fd from_, to_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<int> come_; ///< guarded by mutex_
  /// Of the watching thread: when the first came, and when a second one ends the process.
  std::optional<std::chrono::steady_clock::time_point> first_{}, ends_at_{};
  std::thread watcher_;
};

} // namespace dlrun::cli
