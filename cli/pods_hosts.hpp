/// The pods of a job's hosts, which the root in its control pod makes and replaces.
#pragma once

#include "actors/agent/host_admission.hpp"
#include "actors/agent/run_board.hpp"
#include "cli/displayed_run.hpp"
#include "cli/verb_end.hpp"
#include "kubernetes/pod_service.hpp"

#include <dlrun/error.hpp>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::cli {

/// What the hosts of Job `job` are, as far as their pods are concerned.
kubernetes::host_sights sights_of(const std::string& job, const agent::run_snapshot& now);

/// How a run has ended that was stopped for the sake of its pods: with that reason, and as a
/// failure that another start of the control pod does not mend. What ended otherwise stays as it
/// is.
verb_end ended_for(const std::optional<kubernetes::pods_end>& why, verb_end ended);

/// Of the pods of hosts, as the ConfigMap of the job has it under that key. @returns bad_usage
/// where there is none; null where a job has no pods for PS shards.
result<nlohmann::json> read_pod_template(const std::string& key);

/// Of a control pod. Pods are made from begin() on, as long as it lives; what it leaves goes on.
class pods_hosts {
public:
  /// @param job name of the Job of the control pod  @param address its number
  pods_hosts(std::string job, std::string address)
      : job_{std::move(job)}
      , address_{std::move(address)} {}

  /// @returns bad_usage in what is no pod, or one without a token or a template for others.
  result<void> begin();
  /// Whether Kubernetes knows that host as a pod of the job that is to stay (R46). Any thread.
  /// @returns as agent::join_check.
  result<void> may_join(const agent::arriving_host& who) const;
  void see(const agent::run_snapshot& now);
  /// Before the job has begun.
  void see_who_comes(const agent::run_snapshot& now);
  /// Another root may have taken the run over: no pod is made or deleted until the next see().
  void pause();
  /// Set: the job is to end, and why.
  std::optional<kubernetes::pods_end> end() const;
  /// This pod is asked to end: what for. Asks the API server, for a second at most; where that does
  /// not say, another pod goes on, and the hosts wait for it. While the Job is suspended no pods
  /// are made any more.
  term_wish on_term();
  /// What stands in the way of pods, for people. Any thread.
  std::vector<std::string> held_up_by() const;

private:
  std::shared_ptr<kubernetes::pod_service> service() const;

  std::string job_, address_;
  mutable std::mutex mutex_;
  std::shared_ptr<kubernetes::pod_service> service_; ///< null before begin(); guarded by mutex_
};

} // namespace dlrun::cli
