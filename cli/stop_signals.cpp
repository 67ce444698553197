#include "cli/stop_signals.hpp"

#include "base/service_thread.hpp"
#include "cli/log_output.hpp"
#include "job/exit_code.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace dlrun::cli {
namespace {

using std::chrono::steady_clock;

/// For whoever takes signals, after the second.
constexpr auto taken_within = std::chrono::seconds(2);
/// In place of the number of a signal.
constexpr char no_signal = 0;

/// Where the handler leaves the numbers of signals; -1 where there is none.
std::atomic<int> signals_to = -1;

void leave_number(int signal_number) {
  const int before = errno;
  const auto number = static_cast<char>(signal_number);
  [[maybe_unused]] const auto written = ::write(signals_to, &number, 1);
  errno = before;
}

/// Whoever holds a lock, of a stream too, holds it still.
[[noreturn]] void end_at_once() {
  constexpr std::string_view why = "a second signal ended this command at once";
  const bool is_json = chosen_log_format() == job::log_format::json;
  const auto line = is_json ? json_log_line(log_level::error, why, nlohmann::ordered_json::object())
                            : fmt::format("\ndlrun: {}\n", why);
  [[maybe_unused]] const auto written =
      ::write(is_json ? STDOUT_FILENO : STDERR_FILENO, line.data(), line.size());
  std::_Exit(static_cast<int>(job::exit_code::interrupted));
}

} // namespace

stop_signals::stop_signals() {
  sigemptyset(&handled_);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return; // then they do what they do without us
  from_.reset(ends[0]);
  to_.reset(ends[1]);
  try {
    watcher_ = base::start_service_thread("signals", [this] { watch(); });
  } catch (const std::system_error&) {
    return; // likewise
  }
  signals_to = ends[1];
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    now = {};
    now.sa_handler = leave_number;
    now.sa_flags = SA_RESTART;
    ::sigaction(number, &now, nullptr);
    sigaddset(&handled_, number);
  }
  pthread_sigmask(SIG_BLOCK, &handled_, &mask_before_); // in threads to come, too
}

stop_signals::~stop_signals() {
  if (!watcher_.joinable()) return;
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&handled_, number) == 1) std::signal(number, SIG_DFL);
  signals_to = -1;
  [[maybe_unused]] const auto written = ::write(to_.get(), &no_signal, 1);
  watcher_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

/// On a thread of its own, which alone need not block the signals.
void stop_signals::watch() {
  sigset_t all{};
  sigemptyset(&all);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&all, number);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  std::vector<pollfd> watched{{from_.get(), POLLIN, 0}};
  do base::poll_until(watched, ends_at_.value_or(steady_clock::time_point::max()));
  while (take_in(steady_clock::now()));
}

/// What the handler has left. @returns false when nobody wants it any more
bool stop_signals::take_in(steady_clock::time_point now) {
  const std::scoped_lock lock{mutex_};
  if (come_.empty()) ends_at_.reset();
  char number = no_signal;
  while (::read(from_.get(), &number, 1) == 1) {
    if (number == no_signal) return false;
    come_.push_back(number);
    arrived_.notify_all();
    if (number == SIGHUP) continue;
    // From the first that is not taken: a Ctrl-C that is held down puts nothing off.
    if (!ends_at_ && first_ && now - *first_ >= same_wish) ends_at_ = now + taken_within;
    if (!first_) first_ = now;
  }
  if (ends_at_ && now >= *ends_at_) end_at_once();
  return true;
}

bool stop_signals::has_come() const {
  const std::scoped_lock lock{mutex_};
  return !come_.empty();
}

std::optional<int> stop_signals::take() {
  if (come_.empty()) return std::nullopt;
  const int number = come_.front();
  come_.pop_front();
  return number;
}

std::optional<int> stop_signals::next() {
  const std::scoped_lock lock{mutex_};
  return take();
}

std::optional<int> stop_signals::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock{mutex_};
  arrived_.wait_for(lock, patience, [this] { return !come_.empty(); });
  return take();
}

} // namespace dlrun::cli
