#include "cli/displayed_run.hpp"

#include "actors/common/clock.hpp"
#include "base/unique_fd.hpp"
#include "cli/complain.hpp"
#include "cli/json_display.hpp"
#include "cli/progress_display.hpp"
#include "cli/standard_streams.hpp"
#include "data/sampler.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

constexpr std::size_t columns_of_most = 80;

/// Where the handler leaves the numbers of signals; -1 where there is none.
std::atomic<int> signals_to = -1;

void leave_number(int signal_number) {
  const int before = errno;
  const auto number = static_cast<char>(signal_number);
  [[maybe_unused]] const auto written = ::write(signals_to, &number, 1);
  errno = before;
}

/// The signals that end a run. A handler, and no signalfd: libraries have threads already
/// (RocksDB's, of a run that is resumed), which do not block what the main thread blocks, and would
/// end the process by it. What was ignored stays ignored: nohup, a shell's background job.
class stop_signals {
public:
  stop_signals() {
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
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;
  ~stop_signals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
      if (sigismember(&handled_, number) == 1) std::signal(number, SIG_DFL);
    signals_to = -1;
  }

  /// The number of one that came; to be called on the thread that made it, when all others are
  /// there.
  std::optional<int> next() {
    pthread_sigmask(SIG_UNBLOCK, &handled_, nullptr);
    char number = 0;
    if (::read(from_.get(), &number, 1) != 1) return std::nullopt;
    return number;
  }

private:
  sigset_t handled_{};
  base::unique_fd from_, to_;
};

/// A display, and the signals that end the run.
class displayed_run final : public runtime::run_observer {
public:
  explicit displayed_run(std::unique_ptr<runtime::run_observer> display)
      : display_{std::move(display)} {}

  void update(const agent::run_snapshot& now, protocol::time_point at) override { display_->update(now, at); }
  void event(const protocol::job_event& event) override { display_->event(event); }
  void summary(const dlrun::report& report, const std::string& path) override {
    forget_output(); // progress may be lost, what came of it not
    display_->summary(report, path);
  }

  std::optional<std::string> asked_to_stop() override {
    const auto signal = signals_.next();
    if (!signal) return std::nullopt;
    // A terminal that closes may tell it more than once; a person who presses Ctrl-C again means
    // it.
    if (*signal != SIGHUP && ++asked_ > 1)
      std::_Exit(static_cast<int>(job::exit_code::interrupted)); // the children's lifeline ends them
    return *signal == SIGHUP ? "interrupted: the terminal was closed (SIGHUP)" : "interrupted by a signal";
  }

private:
  std::unique_ptr<runtime::run_observer> display_;
  stop_signals signals_;
  int asked_ = 0;
};

/// How wide the terminal on stdout is; empty when that is none, or one on which nothing can be
/// drawn again.
terminal_columns columns_of_stdout() {
  const char* kind = std::getenv("TERM");
  if (::isatty(STDOUT_FILENO) != 1 || kind == nullptr || *kind == '\0' || std::string_view{kind} == "dumb")
    return {};
  return [] {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? std::size_t{size.ws_col} : columns_of_most;
  };
}

std::unique_ptr<runtime::run_observer> make_display(const runtime::prepared_job& job, bool json) {
  if (json) return std::make_unique<json_display>(stdout, common::now());
  const data::sampler sampler{data::sampler_options_from(job.spec.train(), job.train_records)};
  return std::make_unique<progress_display>(stdout, columns_of_stdout(), sampler.records_in_step({0}),
                                            common::now());
}

} // namespace

int run_displayed(const runtime::prepared_job& job, const runtime::local_run_options& options, bool json) {
  std::signal(SIGPIPE, SIG_IGN); // whoever reads our output may go
  displayed_run observer{make_display(job, json)};
  const auto report = runtime::run_locally(job, options, observer);
  if (!report) return complain(report.error());
  if (unwritten_output() == EPIPE) forget_output();
  if (report->status != dlrun::run_status::completed) complain(report->reason);
  return static_cast<int>(job::exit_code_for(*report));
}

} // namespace dlrun::cli
