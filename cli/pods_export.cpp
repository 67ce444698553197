#include "cli/pods_export.hpp"

#include "cli/kubernetes_objects.hpp"
#include "cli/model_options.hpp"
#include "cli/own_api.hpp"
#include "cli/pods_hosts.hpp"
#include "cli/pods_outcome.hpp"
#include "cli/trained_export.hpp"
#include "job/run_layout.hpp"
#include "kubernetes/eviction_budget.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using kubernetes::run_place;

/// Between two tries. Storage on a network is back after seconds, or somebody has to mend it; the
/// control pod has 60 s when it is asked to end.
constexpr std::array<std::chrono::seconds, 5> pauses{std::chrono::seconds{1}, std::chrono::seconds{2},
                                                     std::chrono::seconds{4}, std::chrono::seconds{8},
                                                     std::chrono::seconds{15}};
/// For the API server, while the hosts wait.
constexpr std::chrono::seconds job_patience{5};

/// @returns whether it was not asked to stop
bool sleep_for(std::chrono::seconds pause, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock{mutex};
  never.wait_for(lock, stop, pause, [] { return false; });
  return !stop.stop_requested();
}

/// Without copies what ran in the control pod is nowhere else.
bool have_hosts_all() {
  const auto pod_template = read_pod_template(pod_template_key);
  return pod_template && !kubernetes::budget_of(*pod_template).empty();
}

} // namespace

std::string pods_export::deliver(const std::stop_token& stop,
                                 const std::shared_ptr<runtime::root_home>& home) {
  if (file_.empty()) return "";
  const auto write = [this] {
    return write_trained(tell_of_model(runtime::load_own_model(run_dir_)), file_);
  };
  auto why_not = write();
  for (const auto pause : pauses) {
    if (why_not.empty()) break;
    warn(fmt::format("{}; it is tried again in {} s", why_not, pause.count()));
    if (!sleep_for(pause, stop)) break;
    why_not = write();
  }
  const std::scoped_lock lock{mutex_};
  is_tried_ = true;
  if (!why_not.empty()) {
    undone_ = tell_undone(std::move(why_not), have_hosts_all());
    return undone_->place == run_place::claim ? "" : undone_->reason;
  }
  if (const auto report = dlrun::read_report(run_dir_ / run_layout::report)) note_completed(*report, home);
  return "";
}

pods_export::undone pods_export::tell_undone(std::string why, bool have_hosts_it) const {
  undone made{std::move(why), run_place::pod};
  std::string model_claim;
  std::string run_claim;
  static_cast<void>(with_own_api([&](kubernetes::api_client& client) {
    const auto job = kubernetes::find_job(client, job_, client.time().now() + job_patience);
    if (!job) return;
    made.place = kubernetes::place_of_run(*job, run_volume);
    model_claim = kubernetes::claim_in(*job, model_volume);
    run_claim = kubernetes::claim_in(*job, run_volume);
  }));
  if (made.place == run_place::hosts && !have_hosts_it) made.place = run_place::pod;
  if (!model_claim.empty()) made.reason += fmt::format(" (claim '{}')", model_claim);
  switch (made.place) {
  case run_place::claim:
    made.reason += fmt::format("; the run in claim '{}' has it: mend that, then delete the job and submit it "
                               "again with the same claims, or call 'dlrun export {}' in a pod that has them",
                               run_claim, run_dir_.string());
    break;
  case run_place::hosts:
    made.reason +=
        fmt::format("; the Job is suspended, and the pods of its hosts keep the model: mend that, "
                    "then 'kubectl patch job {} -p '{{\"spec\":{{\"suspend\":false}}}}'' lets it go "
                    "on",
                    job_);
    break;
  case run_place::pod: made.reason += "; another start of this container tries it again"; break;
  }
  return made;
}

void pods_export::try_once() {
  auto why_not = write_trained(load_and_tell({.path = run_dir_.string()}), file_);
  if (!why_not.empty()) undone_ = tell_undone(std::move(why_not), false);
}

verb_end pods_export::end(verb_end ended) {
  const std::scoped_lock lock{mutex_};
  if (!is_tried_ && !file_.empty() && is_trained(ended)) try_once();
  if (!undone_ || ended.code == static_cast<int>(job::exit_code::interrupted)) return ended;
  if (is_trained(ended)) complain(undone_->reason); // else it was the error of the run
  const bool is_kept = undone_->place == run_place::claim;
  if (!is_kept) ended.report.reset();
  ended.code = static_cast<int>(job::exit_code::job_failed);
  ended.reason = undone_->reason;
  ended.error.reset();
  ended.is_for_good = is_kept;
  ended.waits = undone_->place == run_place::hosts;
  return ended;
}

} // namespace dlrun::cli
