#include "cli/kubernetes_objects.hpp"

#include "cli/own_api.hpp"
#include "cli/yaml_text.hpp"
#include "kubernetes/eviction_budget.hpp"
#include "kubernetes/job_wish.hpp"
#include "kubernetes/pod_memory.hpp"
#include "kubernetes/pod_requests.hpp"
#include "kubernetes/pod_starts.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

namespace dlrun::cli {
namespace {

using object = nlohmann::ordered_json;

constexpr auto secret_folder = "/run/secrets/dlrun";
constexpr auto runs_folder = "/var/lib/dlrun";
constexpr int join_port = 7700;
/// Of API servers: that of the Service, and that on which most listen. Where packets are looked at
/// when a Service has been replaced by what is behind it, the second counts.
constexpr std::array api_ports{443, 6443};
/// Nobody, as in distroless images.
constexpr int user = 65532;
/// Kubernetes restarts a container at once, then after 10 s, 20 s, ... up to 5 minutes: eight
/// hours.
constexpr int control_restarts_max = 100;
/// For which a pod of a host stays on a node that Kubernetes hears nothing of any more; it waits 40
/// s for that, and by itself 5 minutes more. dlrun has made another one long before.
constexpr int silent_node_s = 10;
/// Likewise of a control pod that another one may follow at once: until then the job stands still.
constexpr int silent_control_s = 0;
/// Of a pod of a Job: it differs from that of any other Job, also of one of the same name.
constexpr auto job_uid_field = "metadata.labels['batch.kubernetes.io/controller-uid']";
/// To end the job in order, which takes as long as the step in hand.
constexpr int control_grace_s = 60;
/// Beyond the grace of the job: for what ends behind its workers.
constexpr int host_grace_s = 15;
/// Of a Job that Kueue releases when its queue has room, and may suspend again.
constexpr auto queue_label = "kueue.x-k8s.io/queue-name";
/// Whether the cluster autoscaler may empty the node of a pod. By itself it does not for those of
/// hosts, which have a folder and a controller that it does not know.
constexpr auto autoscaler_annotation = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// What of the driver the container runtime of NVIDIA brings into a container: CUDA, and what
/// watches it; no graphics.
constexpr auto gpu_driver_variable = "NVIDIA_DRIVER_CAPABILITIES";
constexpr auto gpu_driver_parts = "compute,utility";

std::string account_name(const pods_wish& of) {
  return of.service_account.empty() ? of.name : of.service_account;
}
std::string files_name(const pods_wish& of) { return of.name + "-files"; }
std::string secret_name(const pods_wish& of) { return of.secret.empty() ? of.name + "-key" : of.secret; }

/// Of all objects of the job; of pods also what they are for.
object labels(const pods_wish& of, std::string_view component = "") {
  object made{{"app.kubernetes.io/name", "dlrun"}, {"app.kubernetes.io/instance", of.name}};
  if (!component.empty()) made["app.kubernetes.io/component"] = component;
  return made;
}

object metadata(const pods_wish& of, const std::string& name) {
  object made{{"name", name}};
  if (!of.name_space.empty()) made["namespace"] = of.name_space;
  made["labels"] = labels(of);
  return made;
}

/// Kubernetes puts variables in the place of $(NAME), and takes $$ for $.
std::string as_argument(std::string text) {
  for (auto at = text.find('$'); at != text.npos; at = text.find('$', at + 2)) text.insert(at, 1, '$');
  return text;
}

// ---- what the pods read

std::string list_of_hosts(const pods_wish& of) {
  object control{{"name", "control"}, {"address", "self"}, {"cpus", of.control_cpus.value_or(of.cpus)}};
  if (of.gpus > 0 && of.control_gpus == 0) control["gpus"] = "none";
  object listed{{"hosts", object::array({control})}};
  if (of.journal) listed["coordinator"] = "root"; // of all pods the control pod alone reaches the etcd
  listed["join"] = {{"listen", fmt::format("self:{}", join_port)},
                    {"hosts_min", of.hosts_min},
                    {"hosts_max", of.hosts_max + 1},
                    {"key_file", fmt::format("{}/key", secret_folder)}};
  return to_yaml(listed);
}

object secret(const pods_wish& of) {
  return {{"apiVersion", "v1"}, {"kind", "Secret"},  {"metadata", metadata(of, secret_name(of))},
          {"type", "Opaque"},   {"immutable", true}, {"stringData", {{"key", of.key.reveal()}}}};
}

// ---- how they reach each other

/// Without an address of its own: its name is that of the control pod, also before that is ready.
object service(const pods_wish& of) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", metadata(of, of.name)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", labels(of, "control")},
            {"ports", object::array({{{"name", "join"}, {"port", join_port}, {"protocol", "TCP"}}})}}}};
}

/// The pods of the job and each other, at any port, and the name service.
object network_policy(const pods_wish& of) {
  const object own = object::array({{{"podSelector", {{"matchLabels", labels(of)}}}}});
  const object names =
      object::array({{{"port", 53}, {"protocol", "UDP"}}, {{"port", 53}, {"protocol", "TCP"}}});
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", metadata(of, of.name)},
          {"spec",
           {{"podSelector", {{"matchLabels", labels(of)}}},
            {"policyTypes", {"Ingress", "Egress"}},
            {"ingress", object::array({{{"from", own}}})},
            {"egress", object::array({{{"to", own}}, {{"ports", names}}})}}}};
}

/// The control pod and the API server, which has an address of no pod, behind the one of its
/// Service; and an etcd, of which that may be so too.
object control_policy(const pods_wish& of) {
  std::set<int> reached{api_ports.begin(), api_ports.end()};
  if (of.journal) reached.insert(of.journal->ports.begin(), of.journal->ports.end());
  object ports = object::array();
  for (const int port : reached) ports.push_back({{"port", port}, {"protocol", "TCP"}});
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", metadata(of, of.name + "-control")},
          {"spec",
           {{"podSelector", {{"matchLabels", labels(of, "control")}}},
            {"policyTypes", object::array({"Egress"})},
            {"egress", object::array({{{"ports", ports}}})}}}};
}

// ---- what the control pod may ask of the API server

object service_account(const pods_wish& of) {
  return {{"apiVersion", "v1"},
          {"kind", "ServiceAccount"},
          {"metadata", metadata(of, of.name)},
          {"automountServiceAccountToken", false}}; // but in the control pod
}

object rule(const char* group, const char* resource, object verbs, object names = nullptr) {
  object made{{"apiGroups", object::array({group})}, {"resources", object::array({resource})}};
  if (!names.is_null()) made["resourceNames"] = std::move(names);
  made["verbs"] = std::move(verbs);
  return made;
}

/// To make the pods of hosts, of which no Role can tell names before, and to tell how the job has
/// ended. Who gives an object an owner may need the right to delete it.
object role(const pods_wish& of) {
  object rules = object::array({rule("batch", "jobs", {"get", "patch"}, object::array({of.name})),
                                rule("", "configmaps", {"get", "patch", "delete"},
                                     object::array({kubernetes::pods_object_of(of.name)})),
                                rule("", "pods", {"get", "list", "watch", "create", "delete"}),
                                rule("", "events", object::array({"create"}))});
  if (of.has_copies)
    rules.push_back(rule("policy", "poddisruptionbudgets", object::array({"patch"}),
                         object::array({kubernetes::budget_name_of(of.name)})));
  return {{"apiVersion", "rbac.authorization.k8s.io/v1"},
          {"kind", "Role"},
          {"metadata", metadata(of, of.name)},
          {"rules", std::move(rules)}};
}

object role_binding(const pods_wish& of) {
  object account{{"kind", "ServiceAccount"}, {"name", of.name}};
  if (!of.name_space.empty()) account["namespace"] = of.name_space; // as kustomize writes it
  return {{"apiVersion", "rbac.authorization.k8s.io/v1"},
          {"kind", "RoleBinding"},
          {"metadata", metadata(of, of.name)},
          {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", of.name}}},
          {"subjects", object::array({std::move(account)})}};
}

// ---- the pods

object volume_at(const char* name, const std::string& path, bool is_read_only) {
  object made{{"name", name}, {"mountPath", path}};
  if (is_read_only) made["readOnly"] = true;
  return made;
}

object secret_volume(const char* name, const std::string& secret) {
  return {{"name", name}, {"secret", {{"secretName", secret}, {"defaultMode", 0400}}}};
}

object folder_of_pod(const char* name, const std::string& size) {
  return {{"name", name}, {"emptyDir", {{"sizeLimit", size}}}};
}

object claimed(const char* name, const std::string& claim, bool is_read_only) {
  object made{{"claimName", claim}};
  if (is_read_only) made["readOnly"] = true;
  return {{"name", name}, {"persistentVolumeClaim", std::move(made)}};
}

object field_variable(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

/// What a pod has of its node. Of the pods of hosts the template leaves out what they have as the
/// control pod does, since they take that from it (pod_requests): so it stands at one place, where
/// overlays and queues change it.
struct node_part {
  std::uint32_t cpus = 1;
  std::uint32_t gpus = 0;
  std::string memory{};   ///< "": not told here
  bool has_folder = true; ///< on its disk
};

/// For the standard "restricted" of Pod Security.
object container(const pods_wish& of, const std::vector<std::string>& arguments, const node_part& has,
                 object mounts) {
  object room{{"cpu", fmt::format("{}", has.cpus)}};
  if (!has.memory.empty()) room["memory"] = has.memory;
  if (has.has_folder) room["ephemeral-storage"] = of.disk;
  if (has.gpus > 0) room[of.nodes.gpu_resource] = fmt::format("{}", has.gpus);
  object variables = object::array({field_variable("POD_IP", "status.podIP")});
  if (has.gpus > 0) variables.push_back({{"name", gpu_driver_variable}, {"value", gpu_driver_parts}});
  return {{"name", "dlrun"},
          {"image", of.image},
          {"command", object::array({pod_program})},
          {"args", arguments},
          {"env", std::move(variables)},
          {"resources", {{"requests", room}, {"limits", room}}},
          {"securityContext",
           {{"allowPrivilegeEscalation", false},
            {"readOnlyRootFilesystem", true},
            {"capabilities", {{"drop", object::array({"ALL"})}}}}},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"volumeMounts", std::move(mounts)}};
}

/// @param gpus that it has, as far as it is told here  @param account "": it asks nothing of the API
/// server
object pod_template(const pods_wish& of, const char* component, object container, object volumes,
                    std::int64_t grace_s, std::uint32_t gpus, const std::string& account = "") {
  const object spread{{"maxSkew", 1},
                      {"topologyKey", "kubernetes.io/hostname"},
                      {"whenUnsatisfiable", "ScheduleAnyway"},
                      {"labelSelector", {{"matchLabels", labels(of)}}}};
  object spec{{"restartPolicy", "OnFailure"},
              {"terminationGracePeriodSeconds", grace_s},
              {"automountServiceAccountToken", !account.empty()},
              {"enableServiceLinks", false},
              {"securityContext",
               {{"runAsNonRoot", true},
                {"runAsUser", user},
                {"runAsGroup", user},
                {"fsGroup", user},
                {"fsGroupChangePolicy", "OnRootMismatch"},
                {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
  if (!account.empty()) spec["serviceAccountName"] = account;
  if (gpus > 0 && !of.nodes.gpu_runtime_class.empty()) spec["runtimeClassName"] = of.nodes.gpu_runtime_class;
  spec["topologySpreadConstraints"] = object::array({spread});
  spec["containers"] = object::array({std::move(container)});
  spec["volumes"] = std::move(volumes);
  return {{"metadata", {{"labels", labels(of, component)}}}, {"spec", std::move(spec)}};
}

/// What is common to both kinds of pod.
object key_volume(const pods_wish& of) { return secret_volume("key", secret_name(of)); }

/// Of a pod that is to be replaced soon when its node is gone. @param silent_s for which it stays
/// on one of which Kubernetes hears nothing any more
void leave_silent_nodes(object& pod, int silent_s) {
  for (const auto* what : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    pod["spec"]["tolerations"].push_back(
        {{"key", what}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", silent_s}});
}

/// On nodes of their own, where there is room.
object apart(object pods) {
  const object term{{"labelSelector", {{"matchLabels", std::move(pods)}}},
                    {"topologyKey", "kubernetes.io/hostname"}};
  const object weighted{{"weight", 100}, {"podAffinityTerm", term}};
  return {
      {"podAntiAffinity", {{"preferredDuringSchedulingIgnoredDuringExecution", object::array({weighted})}}}};
}

/// Each control pod has a folder of its own, and the etcd has what the next one needs: one that is
/// still there, or may be, is in nobody's way (R40).
bool may_overlap(const pods_wish& of) { return of.journal && of.run_claim.empty(); }

/// Control pods at a time: the second one waits, and leads when the first one does not (R43).
int control_pods(const pods_wish& of) { return of.has_standby ? 2 : 1; }

/// A Job that is made again has another one: it begins a run of its own.
bool has_own_prefix(const pods_wish& of) { return of.journal && of.journal->has_own_prefix; }

std::vector<std::string> control_arguments(const pods_wish& of) {
  std::vector<std::string> arguments{"train",       fmt::format("{}/job.yaml", job_folder),
                                     "--hosts",     fmt::format("{}/hosts.yaml", job_folder),
                                     "--address",   "$(POD_IP)",
                                     "--run-dir",   run_folder_of(of.name),
                                     "--or-resume", "--kubernetes-job",
                                     of.name};
  if (!of.model_claim.empty())
    arguments.insert(arguments.end(), {"--export", fmt::format("{}/{}.safetensors", model_folder, of.name)});
  if (!of.archive_claim.empty()) {
    const auto folder = fmt::format("{}/{}", archive_folder, of.name);
    arguments.insert(arguments.end(),
                     {"--from-archive", folder, "--set", "durability.archive.folder=" + folder, "--set",
                      "durability.archive.every=" + of.archive_every});
  }
  if (of.data_bytes_max > 0)
    arguments.insert(arguments.end(), {"--set", fmt::format("data.memory_limit={}", of.data_bytes_max)});
  for (const auto& one : of.overrides) arguments.insert(arguments.end(), {"--set", as_argument(one)});
  if (of.settles_device) arguments.insert(arguments.end(), {"--set", "cluster.device=cuda"});
  if (has_own_prefix(of))
    arguments.insert(arguments.end(), {"--set", fmt::format("cluster.journal.etcd.prefix=dlrun/{}-$({})",
                                                            of.name, job_uid_variable)});
  return arguments;
}

/// Of the control pods.
object job_spec(const pods_wish& of, object pod) {
  object job;
  if (!of.has_standby) job["completions"] = 1; // else: one has succeeded, and both have ended
  job["parallelism"] = control_pods(of);
  job["podReplacementPolicy"] = may_overlap(of) ? "TerminatingOrFailed" : "Failed";
  job["backoffLimit"] = control_restarts_max * control_pods(of);
  job["template"] = std::move(pod);
  if (!of.queue.empty()) job["suspend"] = true;
  return job;
}

/// What the control pods have beside the run folder, where that is asked for.
void add_claims(const pods_wish& of, object& mounts, object& volumes) {
  if (!of.data_claim.empty()) {
    mounts.push_back(volume_at("data", data_folder, true));
    volumes.push_back(claimed("data", of.data_claim, true));
  }
  if (!of.model_claim.empty()) {
    mounts.push_back(volume_at("model", model_folder, false));
    volumes.push_back(claimed("model", of.model_claim, false));
  }
  if (!of.archive_claim.empty()) {
    mounts.push_back(volume_at("archive", archive_folder, false));
    volumes.push_back(claimed("archive", of.archive_claim, false));
  }
  if (!of.journal_secret.empty()) {
    mounts.push_back(volume_at("journal", journal_folder, true));
    volumes.push_back(secret_volume("journal", of.journal_secret));
  }
}

/// One pod, whose container is started again in place, and goes on with its run; or two, of which
/// one waits. Another pod takes its place when it has ended, and not before where it has the same
/// folder: a run has one root.
object control_job(const pods_wish& of) {
  object mounts = object::array({volume_at("files", job_folder, true), volume_at("key", secret_folder, true),
                                 volume_at(run_volume, runs_folder, false)});
  object volumes = object::array(
      {{{"name", "files"}, {"configMap", {{"name", files_name(of)}}}},
       key_volume(of),
       of.run_claim.empty() ? folder_of_pod(run_volume, of.disk) : claimed(run_volume, of.run_claim, false)});
  add_claims(of, mounts, volumes);
  const auto cpus = std::max(of.control_cpus.value_or(of.cpus), 1U);
  auto contained = container(
      of, control_arguments(of),
      {.cpus = cpus, .gpus = of.control_gpus, .memory = of.memory, .has_folder = of.run_claim.empty()},
      std::move(mounts));
  if (has_own_prefix(of) || of.has_standby)
    contained["env"].push_back(field_variable(job_uid_variable, job_uid_field));
  auto pod = pod_template(of, "control", std::move(contained), std::move(volumes), control_grace_s,
                          of.control_gpus, account_name(of));
  pod["metadata"]["annotations"][autoscaler_annotation] = "false"; // the job stands still meanwhile
  auto& spec = pod["spec"];
  if (!of.priority_class.empty()) spec["priorityClassName"] = of.priority_class;
  for (const auto& [key, text] : of.nodes.labels) spec["nodeSelector"][key] = text;
  spec["tolerations"] = tolerations_of(of.nodes, of.control_gpus > 0); // none too: patches add to them
  if (may_overlap(of)) leave_silent_nodes(pod, silent_control_s);
  if (of.has_standby) spec["affinity"] = apart(labels(of, "control"));
  auto named = metadata(of, of.name);
  if (of.journal) named["annotations"][kubernetes::journal_annotation] = kubernetes::journal_in_etcd;
  if (!of.queue.empty()) named["labels"][queue_label] = of.queue;
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", std::move(named)},
          {"spec", job_spec(of, std::move(pod))}};
}

/// Of a pod of a host, to which the control pod adds name, owner, host name and what it has itself.
object host_template(const pods_wish& of) {
  const std::vector<std::string> arguments{"agent",
                                           "--join",
                                           fmt::format("{}:{}", of.name, join_port),
                                           "--key-file",
                                           fmt::format("{}/key", secret_folder),
                                           "--address",
                                           "$(POD_IP)",
                                           "--folder",
                                           runs_folder,
                                           "--cpus",
                                           fmt::format("{}", of.cpus)};
  object mounts =
      object::array({volume_at("key", secret_folder, true), volume_at(run_volume, runs_folder, false)});
  object volumes = object::array({key_volume(of), folder_of_pod(run_volume, of.disk)});
  const auto own_gpus = of.gpus == of.control_gpus ? 0 : of.gpus;
  auto contained = container(of, arguments, {.cpus = of.cpus, .gpus = own_gpus}, std::move(mounts));
  contained.erase("image");
  auto pod = pod_template(of, "host", std::move(contained), std::move(volumes),
                          of.leave_grace.count() + host_grace_s, own_gpus);
  for (const auto& [key, text] : of.nodes.hosts_labels) pod["spec"]["nodeSelector"][key] = text;
  if (own_gpus > 0) pod["spec"]["tolerations"] = object::array({toleration_of_gpus(of.nodes)});
  leave_silent_nodes(pod, silent_node_s);
  auto& annotations = pod["metadata"]["annotations"];
  if (!of.memory_max.empty()) annotations[kubernetes::memory_max_annotation] = of.memory_max;
  if (of.pending_patience_s > 0)
    annotations[kubernetes::patience_annotation] = fmt::format("{}", of.pending_patience_s);
  if (of.has_standby) annotations[kubernetes::standby_annotation] = "true";
  if (of.has_copies) {
    annotations[kubernetes::budget_annotation] = kubernetes::budget_name_of(of.name);
    annotations[autoscaler_annotation] = "true";
  }
  if (annotations.empty()) pod["metadata"].erase("annotations");
  return pod;
}

/// Of which the control pod says how many have to stay. Not here: whoever applies the objects again
/// would say otherwise.
object eviction_budget(const pods_wish& of) {
  return {
      {"apiVersion", "policy/v1"},
      {"kind", "PodDisruptionBudget"},
      {"metadata", metadata(of, kubernetes::budget_name_of(of.name))},
      {"spec",
       {{"selector", {{"matchLabels", labels(of, "host")}}}, {"unhealthyPodEvictionPolicy", "AlwaysAllow"}}}};
}

/// What the job reads: a root that is started again goes on with the job that it began.
object files(const pods_wish& of) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", metadata(of, files_name(of))},
          {"immutable", true},
          {"data",
           {{"job.yaml", of.job_file},
            {"hosts.yaml", list_of_hosts(of)},
            {pod_template_key, host_template(of).dump(2) + "\n"}}}};
}

/// Which controls the pods of hosts: how many there are to be. The control pod gives it to its Job.
object pods(const pods_wish& of) {
  auto named = metadata(of, kubernetes::pods_object_of(of.name));
  // With fewer than the job may begin with there would be more roles on a pod than its size is for.
  named["annotations"] = {{hosts_min_annotation, fmt::format("{}", std::max(of.hosts_min, 2U) - 1)},
                          {hosts_max_annotation, fmt::format("{}", of.hosts_max)}};
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", std::move(named)},
          {"data", {{kubernetes::hosts_key, fmt::format("{}", of.hosts)}}}};
}

} // namespace

std::string run_folder_of(const std::string& job) { return fmt::format("{}/{}", runs_folder, job); }

bool is_dns_label(std::string_view text) {
  const auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
         std::ranges::all_of(text, is_allowed);
}

bool is_service_name(const std::string& text, std::size_t bytes_max) {
  return is_dns_label(text) && text.size() <= bytes_max && (text.front() < '0' || text.front() > '9');
}

bool is_dns_name(const std::string& text) {
  if (text.size() > 253) return false;
  for (std::size_t begin = 0;;) {
    const auto end = text.find('.', begin);
    if (!is_dns_label(std::string_view{text}.substr(begin, end == text.npos ? end : end - begin)))
      return false;
    if (end == text.npos) return true;
    begin = end + 1;
  }
}

bool is_size(const std::string& text) {
  const auto digits = text.find_first_not_of("0123456789");
  constexpr auto digits_max = 12;
  if (digits == text.npos || digits == 0 || digits > digits_max || text.front() == '0') return false;
  const auto unit = text.substr(digits);
  return unit == "Ki" || unit == "Mi" || unit == "Gi" || unit == "Ti";
}

std::vector<object> kubernetes_objects(const pods_wish& of) {
  std::vector<object> all;
  if (of.secret.empty()) all.push_back(secret(of));
  if (of.service_account.empty())
    for (const auto& make : {service_account, role, role_binding}) all.push_back(make(of));
  for (const auto& make : {files, pods, service, network_policy, control_policy}) all.push_back(make(of));
  if (of.has_copies) all.push_back(eviction_budget(of));
  all.push_back(control_job(of));
  return all;
}

} // namespace dlrun::cli
