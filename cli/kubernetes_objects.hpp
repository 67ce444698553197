/// A job on pods: the objects of Kubernetes that `dlrun manifests` writes.
#pragma once

#include "cli/node_choice.hpp"
#include "security/credentials.hpp"

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::cli {

/// An etcd that has the journal of a job on pods, which its control pod alone reaches.
struct pods_journal {
  bool has_own_prefix = false;     ///< the job names none: each Job of Kubernetes has one of its own
  std::set<std::uint16_t> ports{}; ///< of its members
};

/// Metrics of a job on pods, for a Prometheus in the cluster.
struct pods_metrics {
  std::string secret{};                 ///< that is there, with certificate, key and authority; "": none
  std::string name_space{"monitoring"}; ///< that of the Prometheus
  std::uint16_t port = 9464;            ///< of the control pod
  bool has_monitor = false;             ///< a PodMonitor tells the Prometheus Operator of them
};

struct pods_wish {
  std::string name;       ///< of the Job of the control pod; the other objects have names made of it
  std::string name_space; ///< "": that into which they are applied
  std::string image;      ///< with dlrun in it
  std::string job_file;   ///< its text
  std::vector<std::string> overrides{};
  std::uint32_t hosts = 1;     ///< pods beside the control pod and those for PS shards
  std::uint32_t hosts_max = 1; ///< to so many they may be scaled
  std::uint32_t hosts_min = 2; ///< the job begins when so many are there, the control pod included
  /// Pods that take PS shards and their copies alone, beside those; others then take workers, and
  /// PS shards only while none of these is there. The job begins when all are there.
  std::uint32_t ps_hosts = 0;
  std::uint32_t cpus = 1; ///< of each pod
  /// Of the control pod, for PS shards, copies and workers; null: as many. With 0 it has one, and
  /// takes none of them while another pod is there.
  std::optional<std::uint32_t> control_cpus{};
  std::uint32_t ps_cpus = 1;          ///< of each pod for PS shards
  std::string ps_memory{};            ///< likewise; as Kubernetes writes it, as are the next
  std::string memory{};               ///< of each other pod
  std::string memory_max{};           ///< of a pod of a host that was out of it; "": no more than `memory`
  std::string disk{};                 ///< of each folder of the run
  std::uint64_t disk_quota = 0;       ///< durability.disk_quota; 0: as the job says
  std::uint64_t data_bytes_max = 0;   ///< that it may decode; 0: as the job says
  std::string data_claim{};           ///< mounted where data_folder is, in the control pod; "": nothing is
  std::string run_claim{};            ///< where the run folder is; "": it goes with the control pod
  std::string archive_claim{};        ///< where archives of the run are; "": there are none
  std::string archive_every{"10min"}; ///< as durability.archive.every
  std::string model_claim{};          ///< where the trained model is put; "": nowhere but in the run folder
  std::string secret{};               ///< one that is there, with the key; "": one is made, of `key`
  security::secret_text key{};        ///< as a file of it
  std::optional<pods_journal> journal{}; ///< in an etcd; nothing: in the run folder
  bool has_standby = false;              ///< a second control pod, which waits; needs a journal in an etcd
  std::string journal_secret{};          ///< with what proves the control pod to that; "": nothing does
  pods_metrics metrics{};
  std::string service_account{}; ///< one that is there, for the control pod; "": one is made, with its rights
  std::uint32_t gpus = 0;        ///< of each pod of a host, for its workers
  std::uint32_t control_gpus = 0; ///< of the control pod; 0 beside `gpus`: no worker is there
  bool settles_device = false;    ///< cluster.device is auto, and cuda by `gpus`
  std::string idle_gpus{};        ///< for people: those that no worker uses
  node_choice nodes{};
  std::string priority_class{};         ///< of all pods; "": that which the cluster gives them
  std::string preemptible_class{};      ///< of those beyond `hosts_min` in place of it; "": they are as all
  std::string scheduler{};              ///< likewise
  std::string queue{};                  ///< of Kueue, which releases the job; "": it begins at once
  std::uint32_t pending_patience_s = 0; ///< until people are told of a pod that does not run; 0: 60
  std::string log_format{"json"};       ///< of what containers print: text or json
  bool has_copies = false;              ///< of what is on one pod there is as much on another one
  std::chrono::seconds leave_grace{30}; ///< of the job
};

/// Whether the control pod takes no worker while another pod is there, or never.
inline bool spares_control(const pods_wish& of) {
  return of.control_cpus == 0U || (of.gpus > 0 && of.control_gpus == 0);
}

/// Hosts with which the job begins at least, the control pod included.
inline std::uint32_t hosts_at_least(const pods_wish& of) { return of.hosts_min + of.ps_hosts; }

/// Of the ConfigMap that controls the pods of hosts: between which numbers it may be scaled.
inline constexpr auto hosts_min_annotation = "dlrun/hosts-min";
inline constexpr auto hosts_max_annotation = "dlrun/hosts-max";

/// Of the control pod: pods of hosts join there.
inline constexpr int join_port = 7700;
/// Of each pod: where its kubelet asks whether it lives and is ready.
inline constexpr int probes_port = 7701;

/// Where things are in a pod.
inline constexpr auto job_folder = "/etc/dlrun";
inline constexpr auto data_folder = "/data";
inline constexpr auto model_folder = "/model";
inline constexpr auto archive_folder = "/archive";
inline constexpr auto journal_folder = "/run/secrets/dlrun-journal";
inline constexpr auto metrics_folder = "/run/secrets/dlrun-metrics";
inline constexpr auto pod_program = "/usr/local/bin/dlrun";
/// Volume of a pod that has its folder of the run.
inline constexpr auto run_volume = "run";
/// Likewise of the control pod: where the trained model is to be.
inline constexpr auto model_volume = "model";
/// Of the run, in the control pod.
std::string run_folder_of(const std::string& job);

/// In job_folder of the control pod, and in the ConfigMap behind it: of the pods of hosts, as JSON.
inline constexpr auto pod_template_key = "pod.json";
/// Likewise of those for PS shards, where there are any.
inline constexpr auto ps_template_key = "ps-pod.json";

/// Of the agent in the pods of hosts of a job: the first ones, behind which its number of cores
/// follows, and others may.
std::vector<std::string> agent_arguments(const std::string& job);

/// With the longest name that there is room for: a host is called NAME-hosts- and a number of up to
/// three digits, in 63 characters.
inline constexpr std::size_t pods_name_max = 53;

/// RFC 1123: small letters, digits and '-', first and last no '-'; at most 63.
bool is_dns_label(std::string_view text);
/// RFC 1035: such a label that begins with a letter; at most `bytes_max`.
bool is_service_name(const std::string& text, std::size_t bytes_max);
/// RFC 1123: labels with dots between them; at most 253.
bool is_dns_name(const std::string& text);
/// A number of bytes, as in 512Mi or 4Gi.
bool is_size(const std::string& text);

/// Pure: in the order in which they are to be applied. Every field of `of` is one that is allowed.
std::vector<nlohmann::ordered_json> kubernetes_objects(const pods_wish& of);

} // namespace dlrun::cli
