#include "kubernetes/pod_requests.hpp"

#include "kubernetes/json_text.hpp"
#include "kubernetes/pod_memory.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

constexpr auto image_of_pod = "/spec/containers/0/image";

api_request for_pods(const std::string& verb, const std::string& name = "") {
  return {.verb = verb, .version = "v1", .resource = "pods", .name = name};
}

api_request for_pods_object(const std::string& verb, const std::string& job, const std::string& body = "") {
  return {.verb = verb, .version = "v1", .resource = "configmaps", .name = pods_object_of(job), .body = body};
}

/// Kubernetes itself lets pods bear some taints, each kind for its own reasons.
bool is_of_kubernetes(const json& toleration) {
  return text_at(toleration, "/key").starts_with("node.kubernetes.io/");
}

/// Of these each kind of pod has its own part, which the template tells.
bool is_shared_out(const std::string& resource) {
  return resource == "cpu" || resource == "ephemeral-storage";
}

/// What a container of the control pod has, where that of the template says nothing of it: memory,
/// GPUs, and variables that have the same value everywhere.
void add_parts(const json& own, json& made) {
  for (const auto* kind : {"requests", "limits"})
    for (const auto& [name, amount] : member(member(own, "resources"), kind).items())
      if (!is_shared_out(name) && !member(member(made, "resources"), kind).contains(name))
        made["resources"][kind][name] = amount;
  auto variables = made.value("env", json::array());
  for (const auto& one : member(own, "env")) {
    const auto is_of_its_name = [&](const json& other) {
      return text_in(other, "name") == text_in(one, "name");
    };
    if (one.contains("value") && std::ranges::none_of(variables, is_of_its_name)) variables.push_back(one);
  }
  if (!variables.empty()) made["env"] = std::move(variables);
}

/// What somebody may have changed in the control pod and means for all: what is the same for both,
/// and of nodes what they have to have or may have. What the template has beside stays.
void make_like(const json& own, json& made) {
  for (const auto* key : {"imagePullSecrets", "priorityClassName", "schedulerName"})
    if (const auto found = own.find(key); found != own.end()) made[key] = *found;
  if (const auto found = own.find("runtimeClassName"); found != own.end() && !made.contains(found.key()))
    made[found.key()] = *found;
  if (const auto labels = own.find("nodeSelector"); labels != own.end()) made["nodeSelector"].update(*labels);
  add_parts(own.at("containers").at(0), made["containers"][0]);
  auto tolerations = made.value("tolerations", json::array());
  for (const auto& one : own.value("tolerations", json::array()))
    if (!is_of_kubernetes(one) && std::ranges::find(tolerations, one) == tolerations.end())
      tolerations.push_back(one);
  if (!tolerations.empty()) made["tolerations"] = std::move(tolerations);
}

std::string pods_selector(const std::string& job, const char* component) {
  return fmt::format("app.kubernetes.io/name=dlrun,app.kubernetes.io/instance={},"
                     "app.kubernetes.io/component={}",
                     job, component);
}

/// If that slot is one of those which may go at short notice.
void make_preemptible(pod_slot slot, json& made) {
  const auto& annotations = member(member(made, "metadata"), "annotations");
  const auto from = number_of(text_in(annotations, preemptible_annotation));
  if (!from || slot.index < *from) return;
  made["spec"]["priorityClassName"] = text_in(annotations, preemptible_class_annotation);
  made["spec"]["containers"][0]["args"].push_back("--preemptible");
}

std::string before_index(const std::string& job, pod_group group) {
  return job + (group == pod_group::ps ? "-ps-" : "-hosts-");
}

/// @returns nothing for what is no number of pods.
std::optional<std::uint32_t> pods_in(const std::string& text) {
  const auto count = number_of(text);
  return count && *count <= slots_max ? count : std::nullopt;
}

api_refusal odd(const std::string& what) {
  return {refusal_kind::wrong, fmt::format("the API server's answer is no {}", what)};
}

} // namespace

std::string pods_object_of(const std::string& job) { return job + "-pods"; }

std::string host_of(const std::string& job, pod_slot slot) {
  return before_index(job, slot.group) + std::to_string(slot.index);
}

std::string pod_of(const std::string& job, pod_slot slot, std::uint32_t incarnation) {
  return fmt::format("{}-{}", host_of(job, slot), incarnation);
}

std::optional<pod_slot> slot_of(const std::string& job, const std::string& host) {
  for (const auto group : {pod_group::hosts, pod_group::ps}) {
    const auto before = before_index(job, group);
    const auto index = host.starts_with(before) ? number_of(host.substr(before.size())) : std::nullopt;
    if (index && host_of(job, {group, *index}) == host) return pod_slot{group, *index};
  }
  return std::nullopt;
}

std::string selector_of(const std::string& job) { return pods_selector(job, "host"); }
std::string control_selector_of(const std::string& job) { return pods_selector(job, "control"); }

bool has_standby(const json& pod_template) {
  return text_in(member(member(pod_template, "metadata"), "annotations"), standby_annotation) == "true";
}

json made_like(json pod_template, const json& control) {
  pod_template[json::json_pointer{image_of_pod}] = control.at("containers").at(0).at("image");
  make_like(control, pod_template["spec"]);
  return pod_template;
}

json pod_object(const json& pod_template, const std::string& job, const create_pod& what,
                const std::string& owner) {
  json made = pod_template;
  made["apiVersion"] = "v1";
  made["kind"] = "Pod";
  auto& metadata = made["metadata"];
  metadata["name"] = pod_of(job, what.slot, what.incarnation);
  metadata["labels"][slot_label] = std::to_string(what.slot.index);
  if (what.slot.group == pod_group::ps) metadata["labels"][group_label] = ps_group_word;
  metadata["labels"][incarnation_label] = std::to_string(what.incarnation);
  metadata["ownerReferences"] = json::array({{{"apiVersion", "v1"},
                                              {"kind", "ConfigMap"},
                                              {"name", pods_object_of(job)},
                                              {"uid", owner},
                                              {"controller", true},
                                              {"blockOwnerDeletion", false}}});
  made["spec"]["hostname"] = host_of(job, what.slot);
  keep_off(what.keep_off, made);
  make_preemptible(what.slot, made);
  if (what.memory > 0)
    for (const auto* kind : {"requests", "limits"})
      made["spec"]["containers"][0]["resources"][kind]["memory"] = memory_text(what.memory);
  return made;
}

answer<wanted_pods> pod_requests::wanted(time_point give_up) {
  const auto found = client_.ask(for_pods_object("get", source_.job), give_up);
  if (!found && found.error().kind == refusal_kind::not_there) return wanted_pods{};
  if (!found) return tl::unexpected(found.error());
  if (!text_at(*found, "/metadata/deletionTimestamp").empty()) return wanted_pods{};
  const auto wrong = [this](const char* key) {
    return tl::unexpected(
        api_refusal{refusal_kind::wrong, fmt::format("ConfigMap '{}': its '{}' is no number up to {}",
                                                     pods_object_of(source_.job), key, slots_max)});
  };
  const auto hosts = pods_in(text_at(*found, "/data/hosts"));
  if (!hosts) return wrong(hosts_key);
  const bool has_ps = found->contains(json::json_pointer{"/data/ps"}); // want_none() writes it in any case
  const auto ps = has_ps ? pods_in(text_at(*found, "/data/ps")) : 0;
  if (!ps) return wrong(ps_key);
  if (*ps > 0 && source_.ps_template.is_null())
    return tl::unexpected(api_refusal{
        refusal_kind::wrong,
        fmt::format("ConfigMap '{}' wants {} pods for PS shards, and the job has no template for them",
                    pods_object_of(source_.job), *ps)});
  wanted_pods made{text_at(*found, "/metadata/uid"), *hosts, *ps};
  if (made.owner.empty()) return tl::unexpected(odd("ConfigMap"));
  if (!found->contains(json::json_pointer{"/metadata/ownerReferences/0"}))
    if (auto given = give_to_job(give_up); !given) return tl::unexpected(given.error());
  return made;
}

/// Whether the job has such pods or not.
answer<void> pod_requests::want_none(time_point give_up) {
  const json patch{{"data", {{hosts_key, "0"}, {ps_key, "0"}}}};
  if (const auto done = client_.ask(for_pods_object("patch", source_.job, patch.dump()), give_up); !done)
    return tl::unexpected(done.error());
  return {};
}

answer<void> pod_requests::give_to_job(time_point give_up) {
  const auto job = client_.ask(
      {.verb = "get", .group = "batch", .version = "v1", .resource = "jobs", .name = source_.job}, give_up);
  if (!job) return tl::unexpected(job.error());
  const auto uid = text_at(*job, "/metadata/uid");
  if (uid.empty()) return tl::unexpected(odd("Job"));
  const json owner{{"apiVersion", "batch/v1"},
                   {"kind", "Job"},
                   {"name", source_.job},
                   {"uid", uid},
                   {"blockOwnerDeletion", false}};
  const json patch{{"metadata", {{"ownerReferences", json::array({owner})}}}};
  if (const auto done = client_.ask(for_pods_object("patch", source_.job, patch.dump()), give_up); !done)
    return tl::unexpected(done.error());
  return {};
}

/// Once.
answer<void> pod_requests::look_at_own_pod(time_point give_up) {
  if (is_like_own_pod_) return {};
  const auto own = client_.ask(for_pods("get", source_.own_pod), give_up);
  if (!own) return tl::unexpected(own.error());
  if (!own->contains(json::json_pointer{image_of_pod})) return tl::unexpected(odd("Pod"));
  source_.pod_template = made_like(std::move(source_.pod_template), own->at("spec"));
  if (!source_.ps_template.is_null())
    source_.ps_template = made_like(std::move(source_.ps_template), own->at("spec"));
  is_like_own_pod_ = true;
  return {};
}

answer<std::optional<pod_record>> pod_requests::create(const create_pod& what, const std::string& owner,
                                                       time_point give_up) {
  if (const auto seen = look_at_own_pod(give_up); !seen) return tl::unexpected(seen.error());
  auto request = for_pods("create");
  const auto& pod_template = what.slot.group == pod_group::ps ? source_.ps_template : source_.pod_template;
  request.body = pod_object(pod_template, source_.job, what, owner).dump();
  auto made = client_.ask(request, give_up);
  if (!made && made.error().kind == refusal_kind::conflict) {
    made = client_.ask(for_pods("get", pod_of(source_.job, what.slot, what.incarnation)), give_up);
    if (!made && made.error().kind == refusal_kind::not_there) // it went just now: the next name is free
      return std::optional<pod_record>{};
  }
  if (!made) return tl::unexpected(made.error());
  auto pod = read_pod(*made);
  const bool is_ours =
      pod && pod->owner == owner && pod->slot == what.slot && pod->incarnation == what.incarnation;
  return is_ours ? std::move(pod) : std::optional<pod_record>{};
}

answer<bool> pod_requests::remove(const delete_pod& what, time_point give_up) {
  auto request = for_pods("delete", what.name);
  request.body =
      json{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", what.uid}}}}.dump();
  const auto done = client_.ask(request, give_up);
  if (done) return true;
  if (done.error().kind == refusal_kind::not_there || done.error().kind == refusal_kind::conflict)
    return false; // in conflict with its uid: another pod has that name
  return tl::unexpected(done.error());
}

std::vector<api_refusal> pod_requests::remove_all(const std::vector<pod_record>& pods, time_point give_up) {
  std::vector<api_refusal> refused;
  for (const auto& pod : pods)
    if (!pod.is_going)
      if (auto gone = remove({pod.name, pod.uid, ""}, give_up); !gone)
        refused.push_back(std::move(gone.error()));
  return refused;
}

answer<void> pod_requests::guard(const std::string& budget, std::uint32_t stay, time_point give_up) {
  const json patch{{"spec", {{"minAvailable", stay}}}};
  const auto done = client_.ask({.verb = "patch",
                                 .group = "policy",
                                 .version = "v1",
                                 .resource = "poddisruptionbudgets",
                                 .name = budget,
                                 .body = patch.dump()},
                                give_up);
  if (!done && done.error().kind != refusal_kind::not_there) return tl::unexpected(done.error());
  return {};
}

answer<void> pod_requests::lead(time_point give_up) {
  const json patch{{"metadata", {{"annotations", {{leader_annotation, source_.own_pod}}}}}};
  const auto done = client_.ask({.verb = "patch",
                                 .group = "batch",
                                 .version = "v1",
                                 .resource = "jobs",
                                 .name = source_.job,
                                 .body = patch.dump()},
                                give_up);
  if (!done && done.error().kind != refusal_kind::not_there) return tl::unexpected(done.error());
  return {};
}

answer<std::vector<pod_record>> pod_requests::list(time_point give_up) {
  auto listed = list_pods(client_, selector_of(source_.job), give_up);
  if (!listed) return tl::unexpected(listed.error());
  return std::move(listed->all.pods);
}

} // namespace dlrun::kubernetes
