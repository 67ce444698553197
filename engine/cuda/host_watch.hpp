/// How long the host of a device computes in place of it.
#pragma once

#include <chrono>

namespace dlrun::engine {

/// Adds up laps. Used by one thread at a time.
class host_watch {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using clock = time_point (*)();

  explicit host_watch(clock now)
      : now_{now} {}

  /// Of all laps that have ended.
  std::chrono::nanoseconds total() const { return total_; }

  /// From its beginning to its end.
  class lap {
  public:
    explicit lap(host_watch& of)
        : of_{of}
        , begin_{of.now_()} {}
    ~lap() { of_.total_ += of_.now_() - begin_; }
    lap(const lap&) = delete;
    lap& operator=(const lap&) = delete;

  private:
    host_watch& of_;
    time_point begin_;
  };

private:
  clock now_;
  std::chrono::nanoseconds total_{};
};

} // namespace dlrun::engine
