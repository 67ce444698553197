#include "cli/standby_wait.hpp"

#include "cli/complain.hpp"
#include "cli/kubernetes_objects.hpp"
#include "cli/own_api.hpp"
#include "cli/pods_outcome.hpp"
#include "job/exit_code.hpp"

#include <fmt/format.h>
#include <utility>

namespace dlrun::cli {
namespace {

/// For the API server: another root is wanted soon.
constexpr std::chrono::seconds ask_patience{1};
/// Between two questions while it waits for what Kubernetes says.
constexpr std::chrono::seconds ask_period{2};

/// Whoever has or had the run tells how that ends.
verb_end without_run(job::exit_code code, std::string reason) {
  return {static_cast<int>(code), std::move(reason), std::nullopt, error_code::in_use};
}

} // namespace

void standby_wait::begin_to_wait(const std::string& why) {
  waits_ = true;
  pulse_->set_ready(true);
  if (std::exchange(said_, why) != why) note(why);
}

bool standby_wait::waits(const error& held) {
  begin_to_wait(fmt::format("{}; this one waits, and goes on when that one has ended", held.message));
  return true;
}

/// The run has begun: here once, or as the etcd said a moment ago.
bool standby_wait::asks_again(const error& why) {
  begin_to_wait(fmt::format("{}; this one waits", why.message));
  const auto standing = is_due() ? ask() : std::nullopt;
  return !standing || !standing->told || end_as(*standing->told) != verdict::end;
}

bool standby_wait::goes_on() {
  turning_.turn();
  if (!signals_.has_come()) return true;
  ended_ = without_run(job::exit_code::interrupted, "interrupted by a signal");
  return false;
}

standby_wait::verdict standby_wait::on_free(const std::string& end) {
  if (const auto outcome = kubernetes::outcome_in(end, own_job_uid())) return follow(*outcome);
  if (waits_ && !is_due()) return verdict::wait;
  const auto standing = ask();
  if (standing && standing->told) return end_as(*standing->told);
  if (!standing || standing->wish == kubernetes::job_wish::go_on) return lead();
  begin_to_wait("the Job is suspended, or being deleted; this control pod waits for its end");
  return verdict::wait;
}

/// What follows has no loop until the run goes on.
standby_wait::verdict standby_wait::lead() {
  pulse_->set_ready(false);
  pulse_->main.rest();
  return verdict::lead;
}

/// The run is over. Its last root may not have come to tell Kubernetes.
standby_wait::verdict standby_wait::follow(const kubernetes::job_outcome& end) {
  begin_to_wait(fmt::format("the job is over, with exit code {}; this control pod ends when Kubernetes knows",
                            end.exit_code));
  if (!is_due()) return verdict::wait;
  auto standing = ask();
  if (standing && !standing->told && standing->wish == kubernetes::job_wish::go_on) {
    tell_end(end, job_);
    standing = ask();
  }
  return standing && standing->told ? end_as(*standing->told) : verdict::wait;
}

standby_wait::verdict standby_wait::end_as(int code) {
  note(fmt::format("the job is over, with exit code {}", code));
  ended_ = without_run(static_cast<job::exit_code>(code), "");
  return verdict::end;
}

bool standby_wait::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (now < ask_at_) return false;
  ask_at_ = now + ask_period;
  return true;
}

std::optional<kubernetes::job_standing> standby_wait::ask() const {
  std::optional<kubernetes::job_standing> standing;
  static_cast<void>(with_own_api([&](kubernetes::api_client& client) {
    if (const auto told = standing_of(client, job_, run_volume, client.time().now() + ask_patience))
      standing = *told;
  }));
  return standing;
}

} // namespace dlrun::cli
