#include "cli/kubernetes_objects.hpp"

#include "cli/control_job.hpp"
#include "cli/pod_parts.hpp"
#include "cli/yaml_text.hpp"
#include "kubernetes/eviction_budget.hpp"
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

using namespace manifest;

/// Of API servers: that of the Service, and that on which most listen. Where packets are looked at
/// when a Service has been replaced by what is behind it, the second counts.
constexpr std::array api_ports{443, 6443};
/// Of name services, likewise: that of the Service, and that of the pods behind it in OpenShift.
constexpr std::array name_ports{53, 5353};
/// For which a pod of a host stays on a node that Kubernetes hears nothing of any more; it waits 40
/// s for that, and by itself 5 minutes more. dlrun has made another one long before.
constexpr int silent_node_s = 10;
/// Beyond the grace of the job: for what ends behind its workers.
constexpr int host_grace_s = 15;
/// Which each namespace has, with its name.
constexpr auto namespace_label = "kubernetes.io/metadata.name";

// ---- what the pods read

std::string list_of_hosts(const pods_wish& of) {
  object control{{"name", "control"}, {"address", "self"}, {"cpus", of.control_cpus.value_or(of.cpus)}};
  if (of.gpus > 0 && of.control_gpus == 0) control["gpus"] = "none";
  if (of.ps_hosts > 0) control["takes"] = "ps_shards"; // and these too only if no other is left
  object listed{{"hosts", object::array({control})}};
  if (of.journal) listed["coordinator"] = "root"; // of all pods the control pod alone reaches the etcd
  listed["join"] = {{"listen", fmt::format("self:{}", join_port)},
                    {"hosts_min", hosts_at_least(of)},
                    {"hosts_max", of.hosts_max + of.ps_hosts + 1},
                    {"key_file", fmt::format("{}/key", secret_folder)}};
  // PS shard and copy could go at once with hosts where they do not stay, so the others are waited
  // for.
  if (of.ps_hosts > 0)
    listed["join"]["hosts_min_staying"] = of.ps_hosts + 1; // and the control pod
  else if (!of.preemptible_class.empty())
    listed["join"]["hosts_min_staying"] = of.hosts_min;
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
  object names = object::array();
  for (const int port : name_ports)
    for (const auto* protocol : {"UDP", "TCP"}) names.push_back({{"port", port}, {"protocol", protocol}});
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

/// A Prometheus in a namespace of its own, to that port of the control pod alone.
object metrics_policy(const pods_wish& of) {
  const object asking{{"namespaceSelector", {{"matchLabels", {{namespace_label, of.metrics.name_space}}}}}};
  const object port{{"port", of.metrics.port}, {"protocol", "TCP"}};
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", metadata(of, of.name + "-metrics")},
          {"spec",
           {{"podSelector", {{"matchLabels", labels(of, "control")}}},
            {"policyTypes", object::array({"Ingress"})},
            {"ingress",
             object::array({{{"from", object::array({asking})}, {"ports", object::array({port})}}})}}}};
}

/// For the Prometheus Operator. Prometheus shows the certificate that the control pod has too: both
/// are of one authority.
object pod_monitor(const pods_wish& of) {
  const auto in_secret = [&](const char* key) { return object{{"name", of.metrics.secret}, {"key", key}}; };
  const object tls{{"serverName", of.name},
                   {"ca", {{"secret", in_secret("ca.crt")}}},
                   {"cert", {{"secret", in_secret("tls.crt")}}},
                   {"keySecret", in_secret("tls.key")}};
  const object endpoint{{"port", metrics_port_name}, {"scheme", "https"}, {"tlsConfig", tls}};
  return {{"apiVersion", "monitoring.coreos.com/v1"},
          {"kind", "PodMonitor"},
          {"metadata", metadata(of, of.name)},
          {"spec",
           {{"selector", {{"matchLabels", labels(of, "control")}}},
            {"podMetricsEndpoints", object::array({endpoint})}}}};
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

/// @param takes "": any role
std::vector<std::string> arguments_of(const pods_wish& of, std::string_view takes, std::uint32_t cpus) {
  auto arguments = agent_arguments(of.name);
  arguments.push_back(fmt::format("{}", cpus));
  arguments.insert(arguments.end(), {"--pod", fmt::format("$({})", pod_uid_variable)});
  if (!takes.empty()) arguments.insert(arguments.end(), {"--takes", std::string{takes}});
  append_pod_options(of, arguments);
  return arguments;
}

/// What the pods of hosts have alike, to which the control pod adds name, owner, host name and what
/// it has itself.
object agent_template(const pods_wish& of, const char* takes, const node_part& has) {
  object mounts =
      object::array({volume_at("key", secret_folder, true), volume_at(run_volume, runs_folder, false)});
  object volumes = object::array({key_volume(of), folder_of_pod(run_volume, of.disk)});
  auto contained = container(of, arguments_of(of, takes, has.cpus), has, std::move(mounts));
  contained["env"].push_back(field_variable(pod_uid_variable, "metadata.uid"));
  contained.erase("image");
  auto pod = pod_template(of, "host", std::move(contained), std::move(volumes),
                          of.leave_grace.count() + host_grace_s, has.gpus);
  if (of.has_copies) pod["metadata"]["annotations"][autoscaler_annotation] = "true";
  return pod;
}

/// The control pod reads here too what holds for the pods of all groups.
object host_template(const pods_wish& of) {
  const auto own_gpus = of.gpus == of.control_gpus ? 0 : of.gpus;
  auto pod = agent_template(of, of.ps_hosts > 0 ? "workers" : "", {.cpus = of.cpus, .gpus = own_gpus});
  for (const auto& [key, text] : of.nodes.hosts_labels) pod["spec"]["nodeSelector"][key] = text;
  if (own_gpus > 0) pod["spec"]["tolerations"] = object::array({toleration_of_gpus(of.nodes)});
  leave_silent_nodes(pod, silent_node_s);
  auto& annotations = pod["metadata"]["annotations"];
  if (!of.memory_max.empty()) annotations[kubernetes::memory_max_annotation] = of.memory_max;
  if (of.pending_patience_s > 0)
    annotations[kubernetes::patience_annotation] = fmt::format("{}", of.pending_patience_s);
  if (!of.preemptible_class.empty()) {
    annotations[kubernetes::preemptible_annotation] = fmt::format("{}", of.hosts_min - 1);
    annotations[kubernetes::preemptible_class_annotation] = of.preemptible_class;
  }
  if (of.has_standby) annotations[kubernetes::standby_annotation] = "true";
  if (of.has_copies) annotations[kubernetes::budget_annotation] = kubernetes::budget_name_of(of.name);
  if (annotations.empty()) pod["metadata"].erase("annotations");
  return pod;
}

object ps_template(const pods_wish& of) {
  auto pod = agent_template(of, "ps_shards", {.cpus = of.ps_cpus, .memory = of.ps_memory});
  for (const auto& [key, text] : of.nodes.ps_labels) pod["spec"]["nodeSelector"][key] = text;
  leave_silent_nodes(pod, silent_node_s);
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
  object data{{"job.yaml", of.job_file},
              {"hosts.yaml", list_of_hosts(of)},
              {pod_template_key, host_template(of).dump(2) + "\n"}};
  if (of.ps_hosts > 0) data[ps_template_key] = ps_template(of).dump(2) + "\n";
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", metadata(of, files_name(of))},
          {"immutable", true},
          {"data", std::move(data)}};
}

/// Which controls the pods of hosts: how many there are to be. The control pod gives it to its Job.
object pods(const pods_wish& of) {
  auto named = metadata(of, kubernetes::pods_object_of(of.name));
  // With fewer than the job may begin with there would be more roles on a pod than its size is for.
  named["annotations"] = {{hosts_min_annotation, fmt::format("{}", std::max(of.hosts_min, 2U) - 1)},
                          {hosts_max_annotation, fmt::format("{}", of.hosts_max)}};
  object wanted{{kubernetes::hosts_key, fmt::format("{}", of.hosts)}};
  if (of.ps_hosts > 0) wanted[kubernetes::ps_key] = fmt::format("{}", of.ps_hosts);
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", std::move(named)},
          {"data", std::move(wanted)}};
}

} // namespace

std::vector<std::string> agent_arguments(const std::string& job) {
  return {"agent",
          "--join",
          fmt::format("{}:{}", job, join_port),
          "--key-file",
          fmt::format("{}/key", secret_folder),
          "--address",
          "$(POD_IP)",
          "--machine",
          fmt::format("$({})", node_variable),
          "--folder",
          runs_folder,
          "--cpus"};
}

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
  if (!of.metrics.secret.empty()) all.push_back(metrics_policy(of));
  if (of.metrics.has_monitor) all.push_back(pod_monitor(of));
  if (of.has_copies) all.push_back(eviction_budget(of));
  all.push_back(control_job(of));
  return all;
}

} // namespace dlrun::cli
