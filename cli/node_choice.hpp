/// On which nodes the pods of a job may be, and what of a node they ask for.
#pragma once

#include <dlrun/error.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlrun::cli {

/// Of a pod: it may be on nodes that have this taint.
struct toleration {
  std::string key;
  std::optional<std::string> value{}; ///< of the taint; nothing: any
  std::string effect;                 ///< of the taint: NoSchedule, PreferNoSchedule or NoExecute
  bool operator==(const toleration&) const = default;
};

using node_label = std::pair<std::string, std::string>;

struct node_choice {
  std::vector<node_label> labels{};            ///< that a node has to have
  std::vector<node_label> hosts_labels{};      ///< those that one of a pod of a host has to have too
  std::vector<node_label> ps_labels{};         ///< likewise of a pod for PS shards
  std::vector<toleration> tolerations{};       ///< of all pods
  std::string gpu_resource = "nvidia.com/gpu"; ///< by which GPUs are asked for
  std::string gpu_runtime_class{};             ///< of pods with GPUs; "": that which the cluster gives them
};

/// As the options are given.
struct node_options {
  std::vector<std::string> labels{};       ///< KEY=VALUE
  std::vector<std::string> hosts_labels{}; ///< likewise, as the next
  std::vector<std::string> ps_labels{};
  std::vector<std::string> tolerations{}; ///< KEY[=VALUE]:EFFECT
};

/// A name such as nvidia.com/gpu, for a resource that the nodes of a cluster tell of.
bool is_extended_resource(std::string_view name);

/// Reads the options into `choice`. @returns bad_usage, naming option, value and way out.
result<void> read_nodes(const node_options& given, node_choice& choice);

/// Of the taint that nodes with GPUs often have, to keep other pods off: it is called as they are.
nlohmann::ordered_json toleration_of_gpus(const node_choice& choice);

/// Pure: as the control pod has them, with GPUs or without.
nlohmann::ordered_json tolerations_of(const node_choice& choice, bool has_gpus);

} // namespace dlrun::cli
