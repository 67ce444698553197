#include "cli/displayed_run.hpp"

#include "actors/common/clock.hpp"
#include "base/unique_fd.hpp"
#include "cli/complain.hpp"
#include "cli/json_display.hpp"
#include "cli/progress_display.hpp"
#include "cli/standard_streams.hpp"
#include "data/sampler.hpp"

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

constexpr std::size_t columns_of_most = 80;

/// Whether the caller wants the program to go on in spite of it: nohup, a shell's background job.
bool is_ignored(int signal_number) {
  struct sigaction now {};
  return ::sigaction(signal_number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// A display, and the signals that end the run.
class displayed_run final : public runtime::run_observer {
public:
  explicit displayed_run(std::unique_ptr<runtime::run_observer> display)
      : display_{std::move(display)} {
    sigset_t handled;
    sigemptyset(&handled);
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
      if (!is_ignored(number)) sigaddset(&handled, number);
    pthread_sigmask(SIG_BLOCK, &handled, nullptr);
    signals_ = base::unique_fd{::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK)};
  }

  void update(const agent::run_snapshot& now, protocol::time_point at) override { display_->update(now, at); }
  void event(const protocol::job_event& event) override { display_->event(event); }
  void summary(const dlrun::report& report, const std::string& path) override {
    forget_output(); // progress may be lost, what came of it not
    display_->summary(report, path);
  }

  std::optional<std::string> asked_to_stop() override {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    // A terminal that closes may tell it more than once; a person who presses Ctrl-C again means it.
    if (info.ssi_signo != SIGHUP && ++asked_ > 1)
      std::_Exit(static_cast<int>(job::exit_code::interrupted)); // the children's lifeline ends them
    return info.ssi_signo == SIGHUP ? "interrupted: the terminal was closed (SIGHUP)"
                                    : "interrupted by a signal";
  }

private:
  std::unique_ptr<runtime::run_observer> display_;
  base::unique_fd signals_;
  int asked_ = 0;
};

/// How wide the terminal on stdout is; empty when that is none, or one on which nothing can be drawn again.
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
