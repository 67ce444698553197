#include "kubernetes/pod_record.hpp"

#include "base/host_exit.hpp"
#include "base/utf8.hpp"
#include "kubernetes/json_text.hpp"
#include "kubernetes/pod_memory.hpp"
#include "kubernetes/refused_nodes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

constexpr std::size_t why_bytes_max = 200, waits_bytes_max = 400;

/// What a kubelet says of a container that it cannot make, as often as it tries.
constexpr std::array wrong_reasons{"ErrImagePull",       "ImagePullBackOff",           "ErrImageNeverPull",
                                   "InvalidImageName",   "CreateContainerConfigError", "CreateContainerError",
                                   "RegistryUnavailable"};

std::string controller_of(const json& metadata) {
  for (const auto& one : member(metadata, "ownerReferences"))
    if (member(one, "controller") == true) return text_in(one, "uid");
  return "";
}

pod_phase phase_of(const std::string& text) {
  if (text == "Succeeded") return pod_phase::succeeded;
  if (text == "Failed") return pod_phase::failed;
  return text == "Pending" ? pod_phase::pending : pod_phase::running; // Unknown: nobody says that it ended
}

/// In place of a state that it left, or its state until it is started again.
void read_last_end(const json& container, pod_record& into) {
  const auto& now = member(member(container, "state"), "terminated");
  const auto& last = member(member(container, "lastState"), "terminated");
  const bool is_ended = !now.is_null() || (!into.runs && !last.is_null());
  into.ends = into.restarts + (is_ended ? 1 : 0);
  const auto& how = now.is_null() ? last : now;
  into.is_out_of_memory = text_in(how, "reason") == "OOMKilled";
  into.has_other_bits = member(how, "exitCode") == base::other_bits_exit_code;
}

std::uint64_t memory_of(const json& pod) {
  for (const auto& one : member(member(pod, "spec"), "containers"))
    return memory_bytes(text_in(member(member(one, "resources"), "limits"), "memory")).value_or(0);
  return 0;
}

/// What the scheduler says, and whether somebody else's need ends it.
void read_conditions(const json& status, pod_record& into) {
  for (const auto& one : member(status, "conditions")) {
    const auto type = text_in(one, "type"), holds = text_in(one, "status");
    if (type == "PodScheduled" && holds == "False") into.waits_for = text_in(one, "message");
    if (type == "DisruptionTarget" && holds == "True") into.is_disrupted = true;
  }
}

/// It has one container.
void read_container(const json& status, pod_record& into) {
  for (const auto& one : member(status, "containerStatuses")) {
    const auto& state = member(one, "state");
    into.runs = !member(state, "running").is_null();
    const auto& restarts = member(one, "restartCount");
    if (restarts.is_number_unsigned()) into.restarts = restarts.get<std::uint32_t>();
    read_last_end(one, into);
    const auto waits = text_in(member(state, "waiting"), "reason");
    into.is_held_back = waits == "CrashLoopBackOff";
    if (waits.empty()) continue;
    into.reason = waits;
    const auto message = text_in(member(state, "waiting"), "message");
    into.waits_for = message.empty() ? waits : fmt::format("{}: {}", waits, message);
    into.cannot_start = std::ranges::find(wrong_reasons, waits) != wrong_reasons.end();
  }
}

} // namespace

bool is_alive(const pod_record& pod) {
  return !pod.is_going && (pod.phase == pod_phase::pending || pod.phase == pod_phase::running);
}

std::optional<pod_record> read_pod(const json& pod) {
  const auto &metadata = member(pod, "metadata"), &status = member(pod, "status");
  const auto& labels = member(metadata, "labels");
  const auto slot = number_of(text_in(labels, slot_label));
  const auto incarnation = number_of(text_in(labels, incarnation_label));
  pod_record made{.name = text_in(metadata, "name"), .uid = text_in(metadata, "uid")};
  if (made.name.empty() || made.uid.empty() || !slot || !incarnation) return std::nullopt;
  made.owner = controller_of(metadata);
  made.address = text_in(status, "podIP");
  made.slot = {text_in(labels, group_label) == ps_group_word ? pod_group::ps : pod_group::hosts, *slot};
  made.incarnation = *incarnation;
  made.memory = memory_of(pod);
  made.node = text_in(member(pod, "spec"), "nodeName");
  made.keeps_off = kept_off(pod);
  made.phase = phase_of(text_in(status, "phase"));
  made.is_going = !member(metadata, "deletionTimestamp").is_null();
  made.reason = text_in(status, "reason");
  read_conditions(status, made);
  read_container(status, made);
  made.waits_for = base::printable(made.waits_for, waits_bytes_max);
  made.reason = base::printable(made.reason, why_bytes_max);
  return made;
}

} // namespace dlrun::kubernetes
