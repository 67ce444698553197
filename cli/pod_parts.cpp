#include "cli/pod_parts.hpp"

#include <fmt/format.h>

namespace dlrun::cli::manifest {
namespace {

/// Nobody, as in distroless images.
constexpr int user = 65532;
/// What of the driver the container runtime of NVIDIA brings into a container: CUDA, and what
/// watches it; no graphics.
constexpr auto gpu_driver_variable = "NVIDIA_DRIVER_CAPABILITIES";
constexpr auto gpu_driver_parts = "compute,utility";
constexpr auto probes_port_name = "probes";

object probe(const char* path, int period_s, int timeout_s, int failures) {
  return {{"httpGet", {{"path", path}, {"port", probes_port_name}}},
          {"periodSeconds", period_s},
          {"timeoutSeconds", timeout_s},
          {"failureThreshold", failures}};
}

/// A process answers as soon as it begins: a start of 10 minutes is one on an overloaded node. What
/// stands still for good does not end in order either: 10 s of grace. A pod that is not ready may
/// be evicted: it is ready at once when it has joined, and not for one late answer not ready.
void add_probes(object& container) {
  container["ports"].push_back(
      {{"name", probes_port_name}, {"containerPort", probes_port}, {"protocol", "TCP"}});
  container["startupProbe"] = probe("/livez", 1, 1, 600);
  container["livenessProbe"] = probe("/livez", 10, 5, 3);
  container["livenessProbe"]["terminationGracePeriodSeconds"] = 10;
  container["readinessProbe"] = probe("/readyz", 1, 1, 15);
}

} // namespace

void append_pod_options(const pods_wish& of, std::vector<std::string>& arguments) {
  arguments.insert(arguments.end(), {"--probe-listen", fmt::format("$(POD_IP):{}", probes_port)});
  if (of.log_format != "text") arguments.insert(arguments.end(), {"--log-format", of.log_format});
}

std::string files_name(const pods_wish& of) { return of.name + "-files"; }
std::string secret_name(const pods_wish& of) { return of.secret.empty() ? of.name + "-key" : of.secret; }

object labels(const pods_wish& of, std::string_view component) {
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

object container(const pods_wish& of, const std::vector<std::string>& arguments, const node_part& has,
                 object mounts) {
  object room{{"cpu", fmt::format("{}", has.cpus)}};
  if (!has.memory.empty()) room["memory"] = has.memory;
  if (has.has_folder) room["ephemeral-storage"] = of.disk;
  if (has.gpus > 0) room[of.nodes.gpu_resource] = fmt::format("{}", has.gpus);
  object variables = object::array(
      {field_variable("POD_IP", "status.podIP"), field_variable(node_variable, "spec.nodeName")});
  if (has.gpus > 0) variables.push_back({{"name", gpu_driver_variable}, {"value", gpu_driver_parts}});
  object made{{"name", "dlrun"},
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
  add_probes(made);
  return made;
}

object pod_template(const pods_wish& of, const char* component, object container, object volumes,
                    std::int64_t grace_s, std::uint32_t gpus, const std::string& account) {
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

object key_volume(const pods_wish& of) { return secret_volume("key", secret_name(of)); }

void leave_silent_nodes(object& pod, int silent_s) {
  for (const auto* what : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    pod["spec"]["tolerations"].push_back(
        {{"key", what}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", silent_s}});
}

} // namespace dlrun::cli::manifest
