#include "cli/control_job.hpp"

#include "cli/own_api.hpp"
#include "cli/pod_parts.hpp"
#include "kubernetes/job_wish.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace dlrun::cli::manifest {
namespace {

/// As many as Kubernetes counts: whether a control pod is evicted or its container ends, another
/// one goes on. It restarts a container at once, then after 10 s, 20 s, ... up to 5 minutes.
constexpr std::int32_t control_failures_max = std::numeric_limits<std::int32_t>::max();
/// Likewise of a control pod that another one may follow at once: until then the job stands still.
constexpr int silent_control_s = 0;
/// Of a pod of a Job: it differs from that of any other Job, also of one of the same name.
constexpr auto job_uid_field = "metadata.labels['batch.kubernetes.io/controller-uid']";
/// To end the job in order, which takes as long as the step in hand.
constexpr int control_grace_s = 60;
/// Of a Job that Kueue releases when its queue has room, and may suspend again.
constexpr auto queue_label = "kueue.x-k8s.io/queue-name";

std::string account_name(const pods_wish& of) {
  return of.service_account.empty() ? of.name : of.service_account;
}

/// Kubernetes puts variables in the place of $(NAME), and takes $$ for $.
std::string as_argument(std::string text) {
  for (auto at = text.find('$'); at != text.npos; at = text.find('$', at + 2)) text.insert(at, 1, '$');
  return text;
}

/// On nodes of their own, where there is room.
object apart(object pods) {
  const object term{{"labelSelector", {{"matchLabels", std::move(pods)}}},
                    {"topologyKey", "kubernetes.io/hostname"}};
  const object weighted{{"weight", 100}, {"podAffinityTerm", term}};
  return {
      {"podAntiAffinity", {{"preferredDuringSchedulingIgnoredDuringExecution", object::array({weighted})}}}};
}

/// Control pods at a time: the second one waits, and leads when the first one does not (R43).
int control_pods(const pods_wish& of) { return of.has_standby ? 2 : 1; }

/// A Job that is made again has another one: it begins a run of its own.
bool has_own_prefix(const pods_wish& of) { return of.journal && of.journal->has_own_prefix; }

std::vector<std::string> control_arguments(const pods_wish& of) {
  std::vector<std::string> arguments{"train",       fmt::format("{}/job.yaml", job_folder),
                                     "--hosts",     fmt::format("{}/hosts.yaml", job_folder),
                                     "--address",   "$(POD_IP)",
                                     "--machine",   fmt::format("$({})", node_variable),
                                     "--run-dir",   run_folder_of(of.name),
                                     "--or-resume", "--kubernetes-job",
                                     of.name};
  append_pod_options(of, arguments);
  if (of.disk_quota > 0)
    arguments.insert(arguments.end(), {"--set", fmt::format("durability.disk_quota={}", of.disk_quota)});
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
  if (!of.metrics.secret.empty())
    arguments.insert(arguments.end(),
                     {"--set", fmt::format("observability.prometheus_port={}", of.metrics.port), "--set",
                      fmt::format("observability.prometheus_tls={{address: $(POD_IP), certificate_file: "
                                  "{0}/tls.crt, key_file: {0}/tls.key, ca_file: {0}/ca.crt}}",
                                  metrics_folder)});
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
  if (!may_overlap(of)) job["podReplacementPolicy"] = "Failed"; // else as it is by default, also up to 1.28
  job["backoffLimit"] = control_failures_max;
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
    mounts.push_back(volume_at(model_volume, model_folder, false));
    volumes.push_back(claimed(model_volume, of.model_claim, false));
  }
  if (!of.archive_claim.empty()) {
    mounts.push_back(volume_at("archive", archive_folder, false));
    volumes.push_back(claimed("archive", of.archive_claim, false));
  }
  if (!of.journal_secret.empty()) {
    mounts.push_back(volume_at("journal", journal_folder, true));
    volumes.push_back(secret_volume("journal", of.journal_secret));
  }
  if (!of.metrics.secret.empty()) {
    mounts.push_back(volume_at("metrics", metrics_folder, true));
    volumes.push_back(secret_volume("metrics", of.metrics.secret));
  }
}

} // namespace

bool may_overlap(const pods_wish& of) { return of.journal && of.run_claim.empty(); }

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
  if (of.journal) // whose note of the end names the Job
    contained["env"].push_back(field_variable(job_uid_variable, job_uid_field));
  if (!of.metrics.secret.empty())
    contained["ports"].push_back(
        {{"name", metrics_port_name}, {"containerPort", of.metrics.port}, {"protocol", "TCP"}});
  auto pod = pod_template(of, "control", std::move(contained), std::move(volumes), control_grace_s,
                          of.control_gpus, account_name(of));
  pod["metadata"]["annotations"][autoscaler_annotation] = "false"; // the job stands still meanwhile
  auto& spec = pod["spec"];
  if (!of.priority_class.empty()) spec["priorityClassName"] = of.priority_class;
  if (!of.scheduler.empty()) spec["schedulerName"] = of.scheduler;
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

} // namespace dlrun::cli::manifest
