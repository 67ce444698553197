/// Calls of other threads that wait for a service's thread.
#pragma once

#include <deque>
#include <dlrun/error.hpp>
#include <fmt/format.h>
#include <limits>
#include <mutex>
#include <string>

namespace dlrun::base {

/// A bounded queue that counts what is not answered yet, whether it waits or is being worked on.
/// Thread-safe.
template <class Call>
class call_queue {
public:
  /// `owner` and `calls` are the words of refusals: "`owner` is stopping", "5 `calls`".
  call_queue(std::string owner, std::string calls, std::size_t unanswered_max)
      : owner_(std::move(owner))
      , calls_(std::move(calls))
      , unanswered_max_(unanswered_max) {}

  /// @returns interrupted after close(), limit_exceeded while `unanswered_max` calls are
  ///   unanswered.
  result<void> add(Call call) {
    const std::lock_guard lock(mutex_);
    if (closed_) return fail(error_code::interrupted, owner_ + " is stopping");
    if (unanswered_ >= unanswered_max_)
      return fail(error_code::limit_exceeded, fmt::format("{} {}", unanswered_, calls_));
    ++unanswered_;
    waiting_.push_back(std::move(call));
    return {};
  }

  /// Those that waited longest, at most `most`, for the caller to answer.
  std::deque<Call> take(std::size_t most = std::numeric_limits<std::size_t>::max()) {
    const std::lock_guard lock(mutex_);
    std::deque<Call> taken;
    for (; most > 0 && !waiting_.empty(); --most) {
      taken.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return taken;
  }

  bool has_waiting() const {
    const std::lock_guard lock(mutex_);
    return !waiting_.empty();
  }

  /// One call that was taken is over.
  void count_answered() {
    const std::lock_guard lock(mutex_);
    --unanswered_;
  }

  /// Refuses calls from now on; those that wait can still be taken.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }

private:
  const std::string owner_;
  const std::string calls_;
  const std::size_t unanswered_max_;
  mutable std::mutex mutex_;
  bool closed_ = false; // guarded by mutex_, as are the next two
  std::size_t unanswered_ = 0;
  std::deque<Call> waiting_;
};

} // namespace dlrun::base
