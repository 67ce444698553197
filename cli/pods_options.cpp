#include "cli/pods_options.hpp"

#include "base/hex.hpp"
#include "base/random.hpp"
#include "cli/complain.hpp"
#include "cli/option_refusal.hpp"
#include "cli/pod_sizes.hpp"
#include "cli/pods_job.hpp"
#include "cli/whole_number.hpp"
#include "cli/yaml_text.hpp"
#include "job/field_rules.hpp"
#include "kubernetes/pod_requests.hpp"
#include "kubernetes/pod_starts.hpp"
#include "proto/job_spec.pb.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

constexpr std::uint32_t pod_cpus_max = 4096; // as in the list of hosts
constexpr std::uint32_t pod_gpus_max = 64;   // as cluster.gpus may name

/// Of what is already in the cluster.
result<void> check_name_of(std::string_view option, const std::string& name) {
  if (name.empty() || is_dns_name(name)) return {};
  return refuse_option(
      option, name,
      "no object of Kubernetes can have that name: small letters, digits, '-' and '.', a letter or digit "
      "first and last");
}

result<void> check_sizes(const pods_wish& pods) {
  for (const auto& [option, value] :
       {std::pair{"--memory", &pods.memory}, std::pair{"--ps-memory", &pods.ps_memory},
        std::pair{"--memory-max", &pods.memory_max}, std::pair{"--disk", &pods.disk}})
    if (!value->empty() && !is_size(*value))
      return refuse_option(
          option, *value,
          "expected a whole number and a unit of Kubernetes, Ki, Mi, Gi or Ti, as in 4Gi or 512Mi");
  return {};
}

/// What anybody could take for two words, a control character or nothing.
result<void> check_image(const std::string& image) {
  const auto is_graphic = [](char c) { return c > ' ' && c <= '~'; };
  if (!image.empty() && std::ranges::all_of(image, is_graphic)) return {};
  return refuse_option("--image", image,
                       "expected the name of an image, as in registry.example.com/dlrun:0.2.0");
}

/// Where some pods are for PS shards, others are for workers, and the control pod is for neither.
result<void> settle_ps_hosts(pods_options& options) {
  auto& pods = options.pods;
  if (pods.ps_hosts == 0) {
    const auto alone = [](const char* option, const std::string& value) {
      return refuse_option(option, value,
                           "it is of pods for PS shards: say how many with --ps-hosts, or leave it out");
    };
    if (options.ps_cpus != 0) return alone("--ps-cpus", std::to_string(options.ps_cpus));
    if (!pods.ps_memory.empty()) return alone("--ps-memory", pods.ps_memory);
    if (!options.nodes.ps_labels.empty()) return alone("--ps-node-selector", options.nodes.ps_labels.front());
    return {};
  }
  pods.ps_cpus = std::max(options.ps_cpus, 1U);
  return spare_control(pods);
}

result<void> check_hosts_max(pods_options& options) {
  auto& pods = options.pods;
  pods.hosts_max = options.hosts_max == 0 ? pods.hosts : options.hosts_max;
  if (pods.hosts_max + pods.ps_hosts > kubernetes::slots_max)
    return refuse_option("--ps-hosts", std::to_string(pods.ps_hosts),
                         fmt::format("a job has at most {} pods beside the control pod, and --hosts or "
                                     "--hosts-max has {} of them: let one be less",
                                     kubernetes::slots_max, pods.hosts_max));
  if (pods.hosts_max >= pods.hosts) return {};
  return refuse_option(
      "--hosts-max", std::to_string(options.hosts_max),
      fmt::format("the job begins with --hosts {}, so let it be {} or more", pods.hosts, pods.hosts));
}

/// When the numbers of pods are known.
result<void> check_preemptible(const pods_wish& pods) {
  if (pods.preemptible_class.empty() || pods.hosts_min <= pods.hosts_max) return {};
  return refuse_option(
      "--preemptible-priority-class", pods.preemptible_class,
      fmt::format("it is for pods beyond --hosts-min, and the job needs all {}, the control pod included: "
                  "let --hosts-min be less, or --hosts-max more",
                  pods.hosts_min));
}

result<void> check_pods_name(const pods_wish& pods) {
  if (is_service_name(pods.name, pods_name_max)) return {};
  return refuse_option(
      "--name", pods.name,
      fmt::format("a Service of Kubernetes is to have it, and the names of pods begin with it: at most {} "
                  "small letters, digits and '-', a letter first and no '-' last; name another with "
                  "--name",
                  pods_name_max));
}

/// When the job was read.
result<void> check_standby(const pods_wish& pods) {
  if (!pods.has_standby) return {};
  if (!pods.run_claim.empty())
    return refuse_option(
        "--run-claim", pods.run_claim,
        "with --standby there are two control pods, and they would share the run folder: leave it out, and "
        "keep the trained model with --model-claim");
  if (pods.journal) return {};
  return fail(
      error_code::bad_usage,
      "--standby: a second control pod goes on with what an etcd has of the run, and the journal of this "
      "job is in its run folder: name an etcd as cluster.journal, or leave --standby out");
}

/// When --memory is known.
result<void> check_memory_max(const pods_wish& pods) {
  if (pods.memory_max.empty()) return {};
  for (const auto& [option, memory] :
       {std::pair{"--memory", &pods.memory}, std::pair{"--ps-memory", &pods.ps_memory}})
    if (!memory->empty() && size_bytes(pods.memory_max) < size_bytes(*memory))
      return refuse_option("--memory-max", pods.memory_max,
                           fmt::format("each pod has {} {} from the start, so let it be {} or more", option,
                                       *memory, *memory));
  return {};
}

result<void> check_archives(const pods_wish& pods) {
  if (!pods.archive_claim.empty() && pods.archive_claim == pods.run_claim)
    return refuse_option(
        "--archive-claim", pods.archive_claim,
        "an archive is for when the run is lost, so it needs another claim than --run-claim");
  const auto& rule = job::rule_of(*spec::ArchiveSpec::descriptor()->FindFieldByName("every"));
  if (job::text_allowed(rule, pods.archive_every)) return {};
  return refuse_option("--archive-every", pods.archive_every,
                       "expected a duration from 1s to 30d, as in 10min");
}

/// Of what is in the cluster, or shall be.
result<void> check_names(const pods_wish& pods) {
  for (const auto& [option, name] : {std::pair{"--namespace", &pods.name_space},
                                     std::pair{"--metrics-namespace", &pods.metrics.name_space}})
    if (!name->empty() && !is_dns_label(*name))
      return refuse_option(option, *name,
                           "expected small letters, digits and '-', no '-' first or last, at most 63");
  const std::array names{std::pair{"--data-claim", &pods.data_claim},
                         std::pair{"--run-claim", &pods.run_claim},
                         std::pair{"--model-claim", &pods.model_claim},
                         std::pair{"--archive-claim", &pods.archive_claim},
                         std::pair{"--secret", &pods.secret},
                         std::pair{"--journal-secret", &pods.journal_secret},
                         std::pair{"--metrics-secret", &pods.metrics.secret},
                         std::pair{"--service-account", &pods.service_account},
                         std::pair{"--priority-class", &pods.priority_class},
                         std::pair{"--preemptible-priority-class", &pods.preemptible_class},
                         std::pair{"--scheduler", &pods.scheduler},
                         std::pair{"--queue", &pods.queue}};
  for (const auto& [option, value] : names)
    if (auto fine = check_name_of(option, *value); !fine) return fine;
  return {};
}

/// All of it, before anything is written.
result<void> check(pods_options& options) {
  auto& pods = options.pods;
  auto fine = check_image(pods.image);
  if (fine) fine = check_names(pods);
  for (const auto& [option, claim] :
       {std::pair{"--run-claim", &pods.run_claim}, std::pair{"--model-claim", &pods.model_claim},
        std::pair{"--archive-claim", &pods.archive_claim}})
    if (fine && !claim->empty() && *claim == pods.data_claim)
      fine = refuse_option(
          option, *claim,
          "the control pod mounts --data-claim to read only, so what it writes needs a claim of its "
          "own: name another");
  if (fine) fine = check_archives(pods);
  if (fine && !pods.queue.empty() && pods.run_claim.empty())
    fine = refuse_option(
        "--queue", pods.queue,
        "a queue may suspend the job, and what its pods have is then kept in a claim: name one with "
        "--run-claim");
  if (fine) fine = check_sizes(pods);
  if (fine) fine = read_nodes(options.nodes, pods.nodes);
  if (fine) fine = settle_ps_hosts(options);
  if (fine) fine = settle_gpus(options.gpus, pods);
  if (fine) fine = settle_hosts_min(options.hosts_min, pods);
  if (fine) fine = check_hosts_max(options);
  if (fine) fine = check_preemptible(pods);
  if (fine && !pods.name.empty()) fine = check_pods_name(pods);
  if (fine) fine = read_pods_job(options.file, pods);
  if (fine) fine = check_standby(pods);
  if (fine) fine = check_memory_max(pods);
  if (fine) fine = check_pods_name(pods); // that of the job, where there is no other
  return fine;
}

result<void> make_key(pods_wish& pods) {
  std::array<std::byte, 32> bytes{};
  if (auto made = base::fill_random(bytes); !made) return made;
  pods.key = security::secret_text{base::to_hex(bytes) + "\n"};
  return {};
}

/// What was not asked for and matters.
void say_settled(const pods_wish& pods, bool has_memory, bool has_ps_memory, bool has_disk) {
  std::string made;
  if (!has_memory) made += fmt::format(" --memory {}", pods.memory);
  if (!has_ps_memory && pods.ps_hosts > 0) made += fmt::format(" --ps-memory {}", pods.ps_memory);
  if (!has_disk) made += fmt::format(" --disk {}", pods.disk);
  if (made.empty()) return;
  if (pods.data_bytes_max > 0)
    made += fmt::format(" --set data.memory_limit={}MiB", pods.data_bytes_max >> 20);
  note(fmt::format("as the job needs it, each pod has{} ('dlrun validate FILE --kubernetes')", made));
}

/// What `auto` is, and what is asked for and not used.
void say_gpus(const pods_wish& pods) {
  if (pods.settles_device)
    note(fmt::format("cluster.device: auto is cuda: pods have GPUs (--gpus {})", pods.gpus));
  if (!pods.idle_gpus.empty()) cli::warn(pods.idle_gpus);
}

/// What goes with the control pod.
void say_lost(const pods_wish& pods) {
  if (!pods.run_claim.empty()) return;
  const bool has_model = !pods.model_claim.empty();
  const bool goes_on = pods.journal || !pods.archive_claim.empty();
  if (!goes_on)
    cli::warn(has_model
                  ? "without --run-claim the run goes when the control pod does, and another one begins"
                  : "without --run-claim the run folder, and the trained model in it, goes when the control "
                    "pod does");
  if (goes_on && !has_model)
    cli::warn("the run goes on when the control pod is lost, but without --run-claim and --model-claim the "
              "trained model goes with the control pod when the job is complete");
  if (pods.journal && !pods.has_copies)
    cli::warn("there are no copies of PS shards (--hosts-min, durability.replicas): without --run-claim the "
              "loss of the control pod brings the job back to its beginning");
}

void add_claims(CLI::App& command, pods_wish& pods) {
  command.add_option("--data-claim", pods.data_claim,
                     "PersistentVolumeClaim with the data, which the control pod sees in /data");
  command.add_option("--run-claim", pods.run_claim,
                     "PersistentVolumeClaim for the run folder, which outlives the control pod");
  auto* archive = add_archive_claim(command, pods.archive_claim);
  command
      .add_option("--archive-every", pods.archive_every,
                  "How often one is made, as in 30s, 10min (default: 10min)")
      ->needs(archive);
  command.add_option("--model-claim", pods.model_claim,
                     "PersistentVolumeClaim into which the trained model is written, as NAME.safetensors");
}

void add_metrics(CLI::App& command, pods_metrics& metrics) {
  auto* secret = command.add_option(
      "--metrics-secret", metrics.secret,
      "Secret that is there already, with tls.crt, tls.key and ca.crt: the control pod serves metrics to "
      "clients with a certificate of ca.crt");
  command
      .add_option("--metrics-namespace", metrics.name_space,
                  "Namespace of the Prometheus that reaches them (default: monitoring)")
      ->needs(secret);
  command
      .add_flag("--pod-monitor", metrics.has_monitor,
                "Tell the Prometheus Operator of them with a PodMonitor")
      ->needs(secret);
}

void add_gpus(CLI::App& command, pods_options& options) {
  add_gpus_of_pods(command, options.pods.gpus, options.gpus.control);
  command.add_option("--gpu-resource", options.gpus.resource,
                     "What nodes call their GPUs (default: nvidia.com/gpu)");
  command.add_option("--gpu-runtime-class", options.gpus.runtime_class,
                     "RuntimeClass of pods with GPUs (default: that of the cluster)");
}

void add_nodes(CLI::App& command, node_options& nodes) {
  command
      .add_option("--node-selector", nodes.labels,
                  "Use only nodes with this label, KEY=VALUE; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--hosts-node-selector", nodes.hosts_labels,
                  "The same for the pods of --hosts alone; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--ps-node-selector", nodes.ps_labels,
                  "The same for the pods of --ps-hosts alone; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--toleration", nodes.tolerations,
                  "Use nodes with this taint too, KEY[=VALUE]:EFFECT; may be repeated")
      ->allow_extra_args(false);
}

void add_sizes_of_ps(CLI::App& command, pods_options& options) {
  auto& pods = options.pods;
  command.add_option("--ps-cpus", options.ps_cpus, "Cores of each pod for PS shards (default: 1)")
      ->check(whole_number(1, pod_cpus_max));
  command.add_option("--ps-memory", pods.ps_memory,
                     "Memory of each pod for PS shards (default: what the job needs)");
}

void add_options_of_pods(CLI::App& command, pods_options& options) {
  auto& pods = options.pods;
  command
      .add_option("--hosts", pods.hosts,
                  "Pods beside the control pod, on which the job runs too (default: 1)")
      ->check(whole_number(1, kubernetes::slots_max));
  add_hosts_min(command, options.hosts_min);
  command
      .add_option("--hosts-max", options.hosts_max,
                  "To so many pods beside the control pod 'dlrun scale --hosts' may go (default: --hosts)")
      ->check(whole_number(1, kubernetes::slots_max));
  add_ps_hosts(command, pods.ps_hosts);
  add_sizes_of_ps(command, options);
  command.add_option("--cpus", pods.cpus, "Cores of each pod (default: 1)")
      ->check(whole_number(1, pod_cpus_max));
  add_control_cpus(command, pods.control_cpus);
  command.add_option("--memory", pods.memory,
                     "Memory of each pod, data and tensors included (default: what the job needs)");
  command.add_option("--memory-max", pods.memory_max,
                     "So much a pod gets whose container was out of memory twice (default: --memory)");
  command.add_option("--disk", pods.disk,
                     "Room for the run in each pod, but where --run-claim is (default: what the job needs)");
  add_claims(command, pods);
  add_gpus(command, options);
  command.add_option("--priority-class", pods.priority_class,
                     "PriorityClass of all pods (default: that of the cluster)");
  command.add_option("--preemptible-priority-class", pods.preemptible_class,
                     "PriorityClass of the pods beyond --hosts-min, which may go at short notice: PS shards "
                     "and their copies are on others while there are any (default: that of all pods)");
  command.add_option("--scheduler", pods.scheduler,
                     "Scheduler of all pods, as volcano (default: that of the cluster)");
  command.add_option(
      "--queue", pods.queue,
      "LocalQueue of Kueue, in which the job waits for its release (default: it begins at once)");
  command
      .add_option(
          "--pending-patience", pods.pending_patience_s,
          "Seconds for which a pod may not run before the log and 'dlrun status' say why (default: 60)")
      ->check(whole_number(1, kubernetes::patience_max_s));
  add_nodes(command, options.nodes);
}

} // namespace

CLI::Option* add_hosts_min(CLI::App& command, std::uint32_t& hosts_min) {
  return command
      .add_option("--hosts-min", hosts_min,
                  "The job begins when so many are there, the control pod included (default: all)")
      ->check(whole_number(1, kubernetes::slots_max + 1));
}

result<void> settle_hosts_min(std::uint32_t given, pods_wish& pods) {
  pods.hosts_min = given == 0 ? pods.hosts + 1 : given;
  if (pods.hosts_min > pods.hosts + 1)
    return refuse_option("--hosts-min", std::to_string(given),
                         fmt::format("with --hosts {} there are {} at most, the control pod included",
                                     pods.hosts, pods.hosts + 1));
  if (!spares_control(pods) || pods.hosts_min > 1) return {};
  return refuse_option("--hosts-min", std::to_string(given),
                       pods.ps_hosts > 0 ? "with --ps-hosts workers run on other pods than the control "
                                           "pod: let the job begin with 2 or more"
                       : pods.control_cpus == 0U
                           ? "with --control-cpus 0 the job runs on other pods than the "
                             "control pod: let it begin with 2 or more"
                           : "with --control-gpus 0 workers run on other pods than the "
                             "control pod: let the job begin with 2 or "
                             "more");
}

CLI::Option* add_archive_claim(CLI::App& command, std::string& claim) {
  return command.add_option("--archive-claim", claim,
                            "PersistentVolumeClaim for archives of the run, for when all else is lost");
}

CLI::Option* add_ps_hosts(CLI::App& command, std::uint32_t& hosts) {
  return command
      .add_option("--ps-hosts", hosts,
                  "Pods beside those, for PS shards and their copies alone; those of --hosts are for workers "
                  "then (default: none)")
      ->check(whole_number(1, kubernetes::slots_max));
}

result<void> spare_control(pods_wish& pods) {
  if (pods.ps_hosts == 0) return {};
  if (pods.control_cpus.value_or(0) != 0)
    return refuse_option("--control-cpus", std::to_string(*pods.control_cpus),
                         "with --ps-hosts PS shards, copies and workers are on other pods: leave it out");
  pods.control_cpus = 0;
  return {};
}

CLI::Option* add_control_cpus(CLI::App& command, std::optional<std::uint32_t>& cpus) {
  return command
      .add_option("--control-cpus", cpus,
                  "Cores of the control pod for PS shards, copies and workers (default: --cpus); 0: none of "
                  "them is there while another pod is")
      ->check(whole_number(0, pod_cpus_max));
}

std::array<CLI::Option*, 2> add_gpus_of_pods(CLI::App& command, std::uint32_t& gpus,
                                             std::optional<std::uint32_t>& control) {
  auto* of_all = command.add_option("--gpus", gpus, "GPUs of each pod, for its workers (default: none)")
                     ->check(whole_number(1, pod_gpus_max));
  auto* of_control = command
                         .add_option("--control-gpus", control,
                                     "GPUs of the control pod (default: --gpus, or none with --control-cpus "
                                     "0); 0: no worker is there")
                         ->check(whole_number(0, pod_gpus_max));
  return {of_all, of_control};
}

void add_pods_options(CLI::App& command, pods_options& options) {
  auto& pods = options.pods;
  command.add_option("FILE", options.file, "Job specification (YAML, see docs/spec.md)")->required();
  command.add_option("--image", pods.image, "Image with dlrun as /usr/local/bin/dlrun")->required();
  command.add_option("--name", pods.name, "What the objects are called (default: the job's name)");
  command.add_option("--namespace", pods.name_space,
                     "Namespace of the objects (default: that in which they are applied)");
  add_options_of_pods(command, options);
  command.add_option(
      "--secret", pods.secret,
      "Secret that is there already, whose 'key' has 64 hexadecimal digits (default: one is made)");
  command.add_option("--journal-secret", pods.journal_secret,
                     "Secret that is there already, with the files in /run/secrets/dlrun-journal that "
                     "cluster.journal names; the control pod alone has it");
  add_metrics(command, pods.metrics);
  command.add_flag(
      "--standby", pods.has_standby,
      "Two control pods: the second one waits, and leads at once when the first one is lost; needs a "
      "journal in an etcd");
  command.add_option(
      "--service-account", pods.service_account,
      "ServiceAccount that is there already, for the control pod (default: one is made, with a "
      "Role)");
  command
      .add_option("--log-format", pods.log_format,
                  "What pods print: json, one object a line for a collector of logs, or text (default: json)")
      ->check(CLI::IsMember({"text", "json"}));
  command
      .add_option("--set", pods.overrides,
                  "Override a value: path=value, e.g. train.epochs=3; may be repeated")
      ->allow_extra_args(false);
}

result<void> settle(pods_options& options) {
  auto& pods = options.pods;
  const bool has_memory = !pods.memory.empty(), has_ps_memory = !pods.ps_memory.empty(),
             has_disk = !pods.disk.empty();
  if (auto fine = check(options); !fine) return fine;
  if (pods.secret.empty())
    if (auto made = make_key(pods); !made) return made;
  say_settled(pods, has_memory, has_ps_memory, has_disk);
  say_gpus(pods);
  say_lost(pods);
  return {};
}

std::string manifests_of(const pods_wish& pods) {
  std::string text =
      fmt::format("# A job of dlrun on pods, by 'dlrun manifests'. {}.\n",
                  pods.secret.empty() ? "Keep it secret: whoever has the key in it joins the job"
                                      : "The key by which pods join is in a Secret that is there already");
  for (const auto& one : kubernetes_objects(pods)) text += "---\n" + to_yaml(one);
  return text;
}

} // namespace dlrun::cli
