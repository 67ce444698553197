/// pod_requests: what is asked of the API server for the pods of a job's hosts.
#pragma once

#include "base/job_hosts.hpp"
#include "kubernetes/api_client.hpp"
#include "kubernetes/pod_plan.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

// In the ConfigMap of the pods: how many there are to be.
inline constexpr auto hosts_key = "hosts";
/// Likewise of group ps; absent: none.
inline constexpr auto ps_key = "ps";
/// The control pod is a host too.
inline constexpr std::uint32_t slots_max = base::job_hosts_max - 1;

/// ConfigMap that controls the pods of hosts.
std::string pods_object_of(const std::string& job);
/// Name of the host of a slot; those of its pods have the incarnation behind it.
std::string host_of(const std::string& job, pod_slot slot);
std::string pod_of(const std::string& job, pod_slot slot, std::uint32_t incarnation);
/// For a host's name; nothing where it is none of the job's.
std::optional<pod_slot> slot_of(const std::string& job, const std::string& host);
/// Of the Job of the control pods: which of them is the root. Where the template for pods of hosts
/// says that there may be two.
inline constexpr auto leader_annotation = "dlrun/leader";
inline constexpr auto standby_annotation = "dlrun/standby";
bool has_standby(const nlohmann::json& pod_template);
/// Likewise: from which slot on they may go at short notice, and which PriorityClass these have.
inline constexpr auto preemptible_annotation = "dlrun/preemptible-from";
inline constexpr auto preemptible_class_annotation = "dlrun/preemptible-priority-class";

/// Of the pods of a job's hosts.
std::string selector_of(const std::string& job);
/// Of its control pods.
std::string control_selector_of(const std::string& job);

/// The template with what pods of hosts have of the control pod, of which this is the spec: see
/// pod_requests::create().
nlohmann::json made_like(nlohmann::json pod_template, const nlohmann::json& control);

/// The pod of a slot, made of the template (labels and spec) that all of its group have.
nlohmann::json pod_object(const nlohmann::json& pod_template, const std::string& job, const create_pod& what,
                          const std::string& owner);

/// Whose pods they are, and what they look like.
struct pods_source {
  std::string job;                  ///< name of the Job of the control pod
  std::string own_pod{};            ///< the control pod; "": nothing is made
  nlohmann::json pod_template = {}; ///< of group hosts: labels and spec
  nlohmann::json ps_template = {};  ///< of group ps; null: no pod of it is wanted
};

/// One thread; each call blocks until `give_up` at most.
class pod_requests {
public:
  /// `client` outlives it.
  pod_requests(api_client& client, pods_source source)
      : client_{client}
      , source_(std::move(source)) {}

  /// What users want by now: reads the ConfigMap. One that no Job owns becomes the Job's, so that
  /// Kubernetes deletes it and its pods with that. A ConfigMap that is gone, or about to go, wants
  /// nothing.
  answer<wanted_pods> wanted(time_point give_up);
  /// No pod is to be there from now on.
  answer<void> want_none(time_point give_up);
  /// Makes it, with image, pull secrets, priority class and scheduler of the control pod, whatever
  /// the template says; with its node selector and tolerations beside those of the template; and
  /// with its memory, GPUs, variables and runtime class where the template has none. Who changes
  /// them there means all pods. One that is there already under its name is adopted, where the same
  /// object controls it. @returns nothing where something else has the name
  answer<std::optional<pod_record>> create(const create_pod& what, const std::string& owner,
                                           time_point give_up);
  /// That pod, and no other of its name. One that is gone is no error. @returns whether it was
  /// there
  answer<bool> remove(const delete_pod& what, time_point give_up);
  /// The same of all of these that are not going yet. @returns what was refused
  std::vector<api_refusal> remove_all(const std::vector<pod_record>& pods, time_point give_up);
  /// So many pods of hosts have to stay, says that PodDisruptionBudget from now on. One that is
  /// gone is no error.
  answer<void> guard(const std::string& budget, std::uint32_t stay, time_point give_up);
  /// The control pod that this is leads, says its Job from now on.
  answer<void> lead(time_point give_up);
  /// All pods of hosts that are there.
  answer<std::vector<pod_record>> list(time_point give_up);

private:
  answer<void> give_to_job(time_point give_up);
  answer<void> look_at_own_pod(time_point give_up);

  api_client& client_;
  pods_source source_;
  bool is_like_own_pod_ = false; ///< the template
};

} // namespace dlrun::kubernetes
