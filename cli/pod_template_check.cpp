#include "cli/pod_template_check.hpp"

#include "cli/kubernetes_objects.hpp"
#include "cli/pod_parts.hpp"
#include "kubernetes/json_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

namespace dlrun::cli {
namespace {

using kubernetes::member, kubernetes::text_in;
using nlohmann::json;

/// The one of that name; null: there is none.
json named(const json& list, const std::string& name) {
  for (const auto& one : list)
    if (text_in(one, "name") == name) return one;
  return {};
}

/// What the control pod writes into each pod itself (kubernetes/pod_requests.hpp).
std::string why_not_ours(const json& pod) {
  for (const auto* key : {"name", "generateName", "ownerReferences"})
    if (member(pod, "metadata").contains(key))
      return fmt::format("metadata.{}: is the control pod's to set", key);
  if (text_in(member(pod, "spec"), "restartPolicy") != "OnFailure")
    return "spec.restartPolicy: is not OnFailure, with which a container that ended is started again in its "
           "pod";
  return "";
}

std::string why_not_agent(const json& container, const std::string& job) {
  if (text_in(container, "name") != "dlrun") return "spec.containers[0].name: is not dlrun";
  if (member(container, "command") != json::array({pod_program}))
    return fmt::format("spec.containers[0].command: is not [\"{}\"]", pod_program);
  const auto wanted = agent_arguments(job); // how many cores follows, and more may
  const auto args = member(container, "args");
  if (!args.is_array() || args.size() <= wanted.size() ||
      !std::equal(wanted.begin(), wanted.end(), args.begin()))
    return fmt::format("spec.containers[0].args: do not begin with those of an agent of job '{}'", job);
  return "";
}

std::string why_no_volume(const json& spec, const json& container, const char* name, const char* kind,
                          const char* path) {
  if (!named(member(spec, "volumes"), name).contains(kind))
    return fmt::format("spec.volumes: there is no {} '{}'", kind, name);
  if (text_in(named(member(container, "volumeMounts"), name), "mountPath") != path)
    return fmt::format("spec.containers[0].volumeMounts: '{}' is not at {}", name, path);
  return "";
}

} // namespace

result<void> check_pod_template(const json& pod_template, const std::string& job, const std::string& place) {
  const auto spec = member(pod_template, "spec");
  const auto containers = member(spec, "containers");
  const auto container = containers.is_array() && !containers.empty() ? containers.front() : json{};
  for (const auto& why : {why_not_ours(pod_template), why_not_agent(container, job),
                          why_no_volume(spec, container, "key", "secret", manifest::secret_folder),
                          why_no_volume(spec, container, run_volume, "emptyDir", manifest::runs_folder)})
    if (!why.empty())
      return fail(error_code::bad_usage,
                  fmt::format("'{}': {}: leave there what 'dlrun manifests' wrote; an overlay may change the "
                              "rest of the template, and the control pod's",
                              place, why));
  return {};
}

} // namespace dlrun::cli
