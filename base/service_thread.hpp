/// Threads that serve descriptors: named, and deaf to signals.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <poll.h>
#include <string>
#include <thread>
#include <vector>

namespace dlrun::base {

/// Blocks every signal in this thread for as long as it lives: a thread inherits the mask of the
/// one that starts it.
class blocked_signals {
public:
  blocked_signals();
  ~blocked_signals();
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;

private:
  sigset_t before_{};
};

/// Starts `body` on a thread named `name` (first 15 characters) with every signal blocked, so that
/// a signal to the process is handled by the threads that expect it.
/// @throws std::system_error when the OS has no thread left.
std::thread start_service_thread(const std::string& name, std::function<void()> body);

/// poll() until `deadline` (time_point::max(): for ever), restarted after signals, at least one
/// pass.
/// @returns whether a descriptor is ready; `revents` are set, and all 0 after a time-out.
bool poll_until(std::vector<pollfd>& fds, std::chrono::steady_clock::time_point deadline);

} // namespace dlrun::base
