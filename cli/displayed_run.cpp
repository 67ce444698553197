#include "cli/displayed_run.hpp"

#include "actors/common/clock.hpp"
#include "cli/run_display.hpp"
#include "cli/say.hpp"
#include "cli/standard_streams.hpp"
#include "runtime/run_record.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <unistd.h>

namespace dlrun::cli {
namespace {

/// A display, and the signals that end the run.
class displayed_run final : public runtime::run_observer {
public:
  displayed_run(const display_options& options, const display_choice& how,
                const runtime::local_run_options& run, stop_signals& signals)
      : options_{options}
      , how_{how}
      , run_dir_{run.run_dir}
      , home_{run.home}
      , signals_{signals} {}

  result<void> begun() override {
    if (how_.begun)
      if (auto done = how_.begun(run_dir_); !done) return done;
    flush(stdout); // only now is it what it stays; summary() forgets what is not written by then
    display_ = make_display(options_);
    return {};
  }
  void waits(const std::string& text) override { note(text); }
  result<void> hosts_may_join() override { return how_.hosts_may_join(); }
  result<void> may_join(const agent::arriving_host& who) const override { return how_.may_join(who); }
  void hosts_come(const agent::run_snapshot& now) override { how_.hosts_come(now); }
  std::vector<std::string> held_up_by() const override { return how_.held_up_by(); }
  void update(const agent::run_snapshot& now, protocol::time_point at) override {
    display_->update(now, at);
    if (home_ && !home_->is_alone()) return how_.in_doubt();
    how_.seen(now);
  }
  void event(const protocol::job_event& event) override { display_->event(event); }
  void summary(const dlrun::report& report, const std::string& path) override {
    forget_output(); // progress may be lost, what came of it not
    display_->summary(report, path);
  }

  std::string deliver(const std::stop_token& stop) override { return how_.deliver(stop, home_); }

  void superseded(const std::string& why) override {
    complain(fmt::format("{}; this one ends, and what runs on other hosts goes on", why));
    std::_Exit(static_cast<int>(job::exit_code::job_failed));
  }

  std::optional<runtime::stop_wish> asked_to_stop() override {
    const auto signal = signals_.next();
    if (!signal) {
      auto why = how_.must_end();
      return why ? std::optional{runtime::stop_wish{*std::move(why), {}}} : std::nullopt;
    }
    if (*signal == SIGHUP) return runtime::stop_wish{"interrupted: the terminal was closed (SIGHUP)", {}};
    runtime::stop_wish wish{"interrupted by a signal", {}};
    const auto now = std::chrono::steady_clock::now();
    const bool is_meant = asked_since_ && now - *asked_since_ >= same_wish;
    if (is_meant) {
      wish.end_now = [this] { end_now(); };
    } else if (!asked_since_ && *signal == SIGTERM) {
      follow(how_.on_term(), wish);
    }
    if (!asked_since_) asked_since_ = now;
    return wish;
  }

private:
  void follow(term_wish what, runtime::stop_wish& wish) const {
    if (what == term_wish::hand_over) {
      how_.in_doubt(); // from now on another process may be the root
      wish.end_now = hand_over;
      wish.leaves_hosts = true;
    } else if (what == term_wish::suspend) {
      wish.reason = "its Job is suspended";
      wish.brings_stores = true;
    }
  }

  /// The lifeline of the children on this host ends them.
  [[noreturn]] void end_now() const {
    if (::isatty(STDOUT_FILENO) != 0) say(stdout, "\n"); // the bar's line
    complain(fmt::format("a second signal ended it at once: '{}' goes on from what is on disk",
                         runtime::resume_command(run_dir_)));
    std::_Exit(static_cast<int>(job::exit_code::interrupted));
  }

  /// As a root that is killed, which costs the hosts nothing.
  [[noreturn]] static void hand_over() {
    note("this root ends, and another one goes on; the hosts wait for it");
    std::_Exit(static_cast<int>(job::exit_code::interrupted));
  }

  display_options options_;
  const display_choice& how_;
  std::filesystem::path run_dir_;
  std::shared_ptr<runtime::root_home> home_;       ///< null where no other process can be the root
  std::unique_ptr<runtime::run_observer> display_; ///< null until the job has begun
  stop_signals& signals_;
  std::optional<std::chrono::steady_clock::time_point> asked_since_{};
};

} // namespace

verb_end run_displayed(const runtime::prepared_job& job, const runtime::local_run_options& options,
                       const display_choice& how, stop_signals& signals) {
  std::signal(SIGPIPE, SIG_IGN); // whoever reads our output may go
  displayed_run observer{{.json = how.json,
                          .records_per_step = records_per_step(job.spec.train(), job.train_records),
                          .started = common::now()},
                         how,
                         options,
                         signals};
  auto run = options;
  run.pulse = how.pulse;
  const auto report = runtime::run_locally(job, run, observer);
  if (!report) return ended_by(report.error());
  if (unwritten_output() == EPIPE) forget_output();
  return ended_with(*report);
}

} // namespace dlrun::cli
