/// host_pods: keeps the pods of a job's hosts as they are wanted.
#pragma once

#include "kubernetes/eviction_budget.hpp"
#include "kubernetes/pod_admission.hpp"
#include "kubernetes/pod_plan.hpp"
#include "kubernetes/pod_refusals.hpp"
#include "kubernetes/pod_requests.hpp"
#include "kubernetes/pod_starts.hpp"
#include "kubernetes/silent_pods.hpp"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

struct host_pods_options {
  std::function<void(const std::string&)> tell; ///< what was done, and why
  std::function<void(const std::string&)> warn; ///< once while the same kind of thing is wrong
  std::function<void()> list_anew = [] {};      ///< the watch may have missed something
  /// Between two looks at what users want. Before pods are made it is looked at in any case.
  std::chrono::milliseconds look_period{2000};
  /// Of one request, and all its attempts.
  std::chrono::milliseconds request_max{3000};
  bool has_standby = false; ///< people are to be told which control pod leads
  std::string budget{};     ///< name of the PodDisruptionBudget of the pods; "": there is none
  pod_rules rules{};
  refusal_rules refusals{};
  start_rules starts{};
  silence_rules silences{};
};

/// One pass after another: reads what is wanted, asks the plan, does what it says. What can be done
/// later waits for the next pass. Thread-safe but for pass(), which is one thread's.
class host_pods {
public:
  /// `requests` and `client`, which it uses, outlive it.
  host_pods(pod_requests& requests, const api_client& client, host_pods_options options);

  /// What the watch tells: of pods, and how it fares.
  void on_news(pod_news news);
  void on_watch_refused(const api_refusal& why);
  void on_watch_works();
  /// What the job says of its hosts, once it has begun.
  void hosts_are(host_sights hosts);
  /// Before that: who has come so far.
  void hosts_come(host_sights hosts);
  /// Nobody knows whether what the job said still holds: nothing is done until it says it again.
  void pause();
  /// Blocks while it asks.
  void pass();

  /// Why a host may not join as that pod now; "": it may (R46).
  std::string why_not_in(const arriving_pod& who) const;

  /// Set: the job is to end, and no pods are made any more.
  std::optional<pods_end> end() const;
  /// What stands in the way of pods now, for people.
  std::vector<std::string> held_up_by() const;

private:
  bool must_end();
  bool is_paused() const;
  bool look();
  void say_who_leads();
  void say_when_whole();
  void look_at_starts(time_point now);
  void look_at_silences(const host_sights& hosts, time_point now);
  void look_at_nodes();
  void guard(const std::optional<host_sights>& hosts, time_point now);
  void carry_out(const std::vector<pod_action>& actions);
  std::optional<api_refusal> carry_out(const create_pod& what);
  std::optional<api_refusal> carry_out(const delete_pod& what);
  void note_created(const pod_record& made, time_point now);
  void on_refused(pod_question what, const api_refusal& why);
  void on_done(pod_question what);
  time_point give_up() const;

  pod_requests& requests_;
  const api_client& client_;
  host_pods_options options_;
  pod_plan plan_;
  eviction_budget budget_;
  wanted_pods wanted_{};
  std::optional<time_point> looked_{};
  bool is_known_to_lead_ = false;
  bool is_whole_ = false; ///< as was told
  mutable std::mutex mutex_;
  pod_admission admission_; ///< guarded by mutex_, as are the next
  std::vector<pod_news> news_;
  std::optional<host_sights> hosts_{};
  std::optional<host_sights> coming_{}; ///< before the job has begun
  bool is_paused_ = false;
  pod_refusals refusals_;
  pod_starts starts_;
  silent_pods silences_;
  std::string refused_{}; ///< nodes, for people
  std::optional<pods_end> end_{};
};

} // namespace dlrun::kubernetes
