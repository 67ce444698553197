/// What the objects of a job on pods, and the two kinds of its pods, have in common.
#pragma once

#include "cli/kubernetes_objects.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

/// Parts of the objects that kubernetes_objects() writes. Pure, as that is.
namespace dlrun::cli::manifest {

using object = nlohmann::ordered_json;

// Where things are in each pod.
inline constexpr auto secret_folder = "/run/secrets/dlrun";
inline constexpr auto runs_folder = "/var/lib/dlrun";

/// Of the control pod: the port on which its metrics are.
inline constexpr auto metrics_port_name = "metrics";

/// Whether the cluster autoscaler may empty the node of a pod. By itself it does not for those of
/// hosts, which have a folder and a controller that it does not know.
inline constexpr auto autoscaler_annotation = "cluster-autoscaler.kubernetes.io/safe-to-evict";

std::string files_name(const pods_wish& of);
std::string secret_name(const pods_wish& of);
/// Says in the arguments of a container where it is probed, and in which format it prints.
void append_pod_options(const pods_wish& of, std::vector<std::string>& arguments);

/// Of all objects of the job; of pods also what they are for.
object labels(const pods_wish& of, std::string_view component = "");
object metadata(const pods_wish& of, const std::string& name);

object volume_at(const char* name, const std::string& path, bool is_read_only);
object secret_volume(const char* name, const std::string& secret);
object folder_of_pod(const char* name, const std::string& size);
object claimed(const char* name, const std::string& claim, bool is_read_only);
/// With the key by which hosts join.
object key_volume(const pods_wish& of);
object field_variable(const char* name, const char* path);
/// Of each pod: the node on which it is.
inline constexpr auto node_variable = "NODE_NAME";
inline constexpr auto pod_uid_variable = "POD_UID";

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
                 object mounts);
/// @param gpus that it has, as far as it is told here  @param account "": it asks nothing of the API
/// server
object pod_template(const pods_wish& of, const char* component, object container, object volumes,
                    std::int64_t grace_s, std::uint32_t gpus, const std::string& account = "");
/// Of a pod that is to be replaced soon when its node is gone. @param silent_s for which it stays
/// on one of which Kubernetes hears nothing any more
void leave_silent_nodes(object& pod, int silent_s);

} // namespace dlrun::cli::manifest
