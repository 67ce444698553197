#include "cli/stop_signals.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

/// Where the handler leaves the numbers of signals; -1 where there is none.
std::atomic<int> signals_to = -1;

void leave_number(int signal_number) {
  const int before = errno;
  const auto number = static_cast<char>(signal_number);
  [[maybe_unused]] const auto written = ::write(signals_to, &number, 1);
  errno = before;
}

} // namespace

stop_signals::stop_signals() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return; // then they do what they do without us
  from_.reset(ends[0]);
  to_.reset(ends[1]);
  signals_to = ends[1];
  sigemptyset(&handled_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    now = {};
    now.sa_handler = leave_number;
    now.sa_flags = SA_RESTART;
    ::sigaction(number, &now, nullptr);
    sigaddset(&handled_, number);
  }
  pthread_sigmask(SIG_BLOCK, &handled_, nullptr); // in threads to come
}

stop_signals::~stop_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&handled_, number) == 1) std::signal(number, SIG_DFL);
  signals_to = -1;
}

bool stop_signals::has_come() const {
  sigset_t pending{}; // where it is blocked, as before the first next()
  sigemptyset(&pending);
  ::sigpending(&pending);
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&handled_, number) == 1 && sigismember(&pending, number) == 1) return true;
  pollfd watched{from_.get(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

std::optional<int> stop_signals::next() {
  pthread_sigmask(SIG_UNBLOCK, &handled_, nullptr);
  char number = 0;
  if (::read(from_.get(), &number, 1) != 1) return std::nullopt;
  return number;
}

std::optional<int> stop_signals::wait(std::chrono::milliseconds patience) {
  if (const auto already = next()) return already;
  pollfd watched{from_.get(), POLLIN, 0};
  ::poll(&watched, 1, static_cast<int>(patience.count())); // a signal ends it too
  return next();
}

} // namespace dlrun::cli
