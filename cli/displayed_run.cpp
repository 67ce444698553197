#include "cli/displayed_run.hpp"

#include "actors/common/clock.hpp"
#include "base/unique_fd.hpp"
#include "cli/complain.hpp"
#include "cli/json_display.hpp"
#include "cli/progress_display.hpp"
#include "data/sampler.hpp"

#include <csignal>
#include <memory>
#include <sys/signalfd.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

/// A display, and the signals that end the run.
class displayed_run final : public runtime::run_observer {
public:
  explicit displayed_run(std::unique_ptr<runtime::run_observer> display)
      : display_{std::move(display)} {
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &handled, nullptr);
    signals_ = base::unique_fd{::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK)};
  }

  void update(const agent::run_snapshot& now, protocol::time_point at) override { display_->update(now, at); }
  void event(const protocol::job_event& event) override { display_->event(event); }
  void summary(const dlrun::report& report, const std::string& path) override {
    display_->summary(report, path);
  }

  std::optional<std::string> asked_to_stop() override {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    if (++asked_ > 1)
      std::_Exit(static_cast<int>(job::exit_code::interrupted)); // the children's lifeline ends them
    return "interrupted by a signal";
  }

private:
  std::unique_ptr<runtime::run_observer> display_;
  base::unique_fd signals_;
  int asked_ = 0;
};

std::unique_ptr<runtime::run_observer> make_display(const runtime::prepared_job& job, bool json) {
  if (json) return std::make_unique<json_display>(stdout, common::now());
  const data::sampler sampler{data::sampler_options_from(job.spec.train(), job.train_records)};
  return std::make_unique<progress_display>(stdout, ::isatty(STDOUT_FILENO) == 1,
                                            sampler.records_in_step({0}), common::now());
}

} // namespace

int run_displayed(const runtime::prepared_job& job, const runtime::local_run_options& options, bool json) {
  std::signal(SIGPIPE, SIG_IGN); // whoever reads our output may go
  displayed_run observer{make_display(job, json)};
  const auto report = runtime::run_locally(job, options, observer);
  if (!report) return complain(report.error());
  if (report->status != dlrun::run_status::completed) say(stderr, "dlrun: {}\n", report->reason);
  return static_cast<int>(job::exit_code_for(*report));
}

} // namespace dlrun::cli
