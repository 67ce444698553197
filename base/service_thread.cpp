#include "base/service_thread.hpp"

#include <algorithm>
#include <cerrno>
#include <dlrun/check.hpp>
#include <limits>
#include <pthread.h>

namespace dlrun::base {

blocked_signals::blocked_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

blocked_signals::~blocked_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::thread start_service_thread(const std::string& name, std::function<void()> body) {
  const blocked_signals blocked;
  return std::thread([name = name.substr(0, 15), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    body();
  });
}

bool poll_until(std::vector<pollfd>& fds, std::chrono::steady_clock::time_point deadline) {
  using std::chrono::steady_clock;
  while (true) {
    for (auto& fd : fds) fd.revents = 0;
    const auto now = steady_clock::now();
    int wait_ms = -1;
    if (deadline != steady_clock::time_point::max()) {
      // Rounded up: a poll that returns just before the deadline would make the caller spin.
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(deadline, now) - now).count();
      wait_ms = static_cast<int>(std::min<std::int64_t>(left, std::numeric_limits<int>::max()));
    }
    const int ready = ::poll(fds.data(), fds.size(), wait_ms);
    if (ready > 0) return true;
    if (ready == 0) return false;
    DLRUN_CHECK(errno == EINTR || errno == EAGAIN, "poll over {} descriptors: errno {}", fds.size(), errno);
  }
}

} // namespace dlrun::base
