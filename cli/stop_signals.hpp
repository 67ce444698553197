/// The signals by which a user ends what a command shows.
#pragma once

#include "base/unique_fd.hpp"

#include <chrono>
#include <csignal>
#include <optional>

namespace dlrun::cli {

/// Takes over SIGINT, SIGTERM and SIGHUP as long as it lives; one a process. By a handler, and no
/// signalfd: libraries have threads already (RocksDB's, of a run that is resumed), which do not
/// block what the main thread blocks, and would end the process by it. What was ignored stays
/// ignored: nohup, a shell's background job.
class stop_signals {
public:
  stop_signals();
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;
  ~stop_signals();

  /// Whether one came that next() has not told. Changes nothing.
  bool has_come() const;
  /// The number of one that came; to be called on the thread that made it, when all others are
  /// there.
  std::optional<int> next();
  /// The same, of one that comes within `patience`; returns when it comes.
  std::optional<int> wait(std::chrono::milliseconds patience);

private:
  sigset_t handled_{};
  base::unique_fd from_, to_;
};

} // namespace dlrun::cli
