/// The thread of a service: it sits in poll() until there is something to serve.
#pragma once

#include "base/service_thread.hpp"
#include "base/wake_event.hpp"

#include <atomic>
#include <optional>
#include <span>
#include <string_view>

namespace dlrun::base {

/// What a service_loop serves. All calls come on the loop's thread.
class polled_service {
public:
  polled_service() = default;
  virtual ~polled_service() = default;
  polled_service(const polled_service&) = delete;
  polled_service& operator=(const polled_service&) = delete;

  /// Does what was asked for by wake(), then appends to `fds` what to wait for: a negative
  /// descriptor takes a place and is not waited for.
  /// @returns until when to wait; time_point::max() for ever.
  virtual std::chrono::steady_clock::time_point watch(std::vector<pollfd>& fds) = 0;
  /// After the wait, however it ended: `fds` are those of watch(), with `revents` set.
  virtual void serve(std::span<const pollfd> fds) = 0;
  /// The last call, once the loop was told to stop.
  virtual void end() {}
};

/// Runs one polled_service on one thread. A member of the service, declared last: it stops before
/// anything that it serves is destroyed.
class service_loop {
public:
  service_loop() = default;
  ~service_loop() { stop(); }
  service_loop(const service_loop&) = delete;
  service_loop& operator=(const service_loop&) = delete;

  /// Starts the thread, named `thread_name` (first 15 characters). `owner` is what errors call the
  /// service ("the segment server"); `served` must outlive the loop. To be called once.
  /// @returns system when descriptors or threads have run out.
  result<void> start(const std::string& thread_name, std::string_view owner, polled_service& served);

  /// Ends the wait, so that watch() is called again. Any thread; never blocks. Only after start().
  void wake() const { wake_->notify(); }

  /// Tells the loop to stop and waits until end() has returned. Nothing is served afterwards. Not
  /// to be called on the loop's thread.
  void stop();

private:
  void run(polled_service& served) const;

  std::optional<wake_event> wake_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

} // namespace dlrun::base
