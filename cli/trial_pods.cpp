#include "cli/trial_pods.hpp"

#include "cli/kubectl_words.hpp"
#include "kubernetes/pod_requests.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::json;

/// What the kinds of pods are made of.
struct pod_templates {
  json control, host;
  json ps = nullptr; ///< null: there are none of the kind
};

pod_templates templates_of(const pods_wish& of) {
  pod_templates made;
  for (const auto& each : kubernetes_objects(of)) {
    const json one = each;
    if (one.at("kind") == "Job") made.control = one.at("spec").at("template");
    for (const auto& [key, into] :
         {std::pair{pod_template_key, &made.host}, std::pair{ps_template_key, &made.ps}})
      if (const json::json_pointer at{fmt::format("/data/{}", key)}; one.contains(at))
        *into = json::parse(one.at(at).get<std::string>());
  }
  for (auto* one : {&made.host, &made.ps})
    if (!one->is_null()) *one = kubernetes::made_like(std::move(*one), made.control.at("spec"));
  return made;
}

std::string manifest_of(const pods_wish& of, json pod, const std::string& name) {
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  auto& metadata = pod["metadata"];
  metadata.erase("name");
  metadata.erase("ownerReferences");
  metadata["generateName"] = name + "-";
  if (!of.name_space.empty()) metadata["namespace"] = of.name_space;
  return pod.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string control_manifest(const pods_wish& of, json pod) {
  if (of.service_account.empty()) pod["spec"].erase("serviceAccountName");
  return manifest_of(of, std::move(pod), of.name);
}

std::string host_manifest(const pods_wish& of, const json& pod_template, kubernetes::pod_slot slot) {
  return manifest_of(
      of, kubernetes::pod_object(pod_template, of.name, {.slot = slot, .incarnation = 1, .why = {}}, ""),
      kubernetes::host_of(of.name, slot));
}

} // namespace

std::vector<trial_pod> trial_pods_of(const pods_wish& of) {
  const auto [control, host, ps] = templates_of(of);
  std::vector<trial_pod> all{{"the control pod", control_manifest(of, control)},
                             {"a pod of a host", host_manifest(of, host, 0)}};
  if (!ps.is_null())
    all.push_back({"a pod for PS shards", host_manifest(of, ps, {kubernetes::pod_group::ps, 0})});
  if (!of.preemptible_class.empty())
    all.push_back({"a preemptible pod of a host", host_manifest(of, host, of.hosts_min - 1)});
  return all;
}

trial_end end_of_trial(int code, std::string_view complaint) {
  if (code == 0) return trial_end::taken;
  const auto says = [&](std::string_view part) { return complaint.find(part) != complaint.npos; };
  if (says("exceeded quota")) return trial_end::no_room; // neither has a code of its own
  const bool is_nobody_asked = says("cannot create resource \"pods\"") || says("does not support dry run");
  if (is_unanswered(complaint)) return trial_end::unanswered;
  return is_nobody_asked ? trial_end::not_tried : trial_end::refused;
}

} // namespace dlrun::cli
