#include "kubernetes/pod_starts.hpp"

#include "kubernetes/json_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

namespace dlrun::kubernetes {
namespace {

std::string why_of(const pod_record& pod) {
  return pod.waits_for.empty() ? "Kubernetes does not say why" : pod.waits_for;
}

/// By what they wait for: "3 pods do not run, x-hosts-0-1 is one: no node has room".
std::vector<std::string> grouped(const std::vector<const pod_record*>& pods) {
  std::map<std::string, std::vector<const pod_record*>> by_reason;
  for (const auto* pod : pods) by_reason[why_of(*pod)].push_back(pod);
  std::vector<std::string> all;
  for (const auto& [why, of] : by_reason)
    all.push_back(of.size() == 1
                      ? fmt::format("pod {} does not run: {}", of.front()->name, why)
                      : fmt::format("{} pods do not run, {} is one: {}", of.size(), of.front()->name, why));
  return all;
}

} // namespace

start_rules start_rules_of(const nlohmann::json& pod_template) {
  const auto& annotations = member(member(pod_template, "metadata"), "annotations");
  start_rules made;
  const auto seconds = number_of(text_in(annotations, patience_annotation));
  if (seconds && *seconds >= 1 && *seconds <= patience_max_s) made.patience = std::chrono::seconds{*seconds};
  return made;
}

std::vector<std::string> pod_starts::look(const std::map<std::string, pod_record>& pods, time_point now) {
  see(pods, now);
  std::vector<const pod_record*> late, news;
  const pod_record* wrong = nullptr;
  for (auto& [uid, one] : waits_) {
    if (one.pod.cannot_start) wrong = &one.pod;
    if (now - one.since < rules_.patience) continue;
    late.push_back(&one.pod);
    if (!std::exchange(one.is_told, true)) news.push_back(&one.pod);
  }
  told_ = grouped(late);
  if (wrong == nullptr || has_run_)
    wrong_since_.reset();
  else if (!wrong_since_)
    wrong_since_ = now;
  const bool is_hopeless = wrong_since_ && now - *wrong_since_ >= rules_.patience;
  wrong_ = is_hopeless ? fmt::format("{}: {}", wrong->name, why_of(*wrong)) : "";
  return grouped(news);
}

void pod_starts::see(const std::map<std::string, pod_record>& pods, time_point now) {
  for (const auto& [uid, pod] : pods) {
    const bool did_run = pod.runs || pod.ends > 0 || pod.phase == pod_phase::succeeded;
    has_run_ |= did_run;
    if (did_run || !is_alive(pod))
      waits_.erase(uid);
    else
      waits_.try_emplace(uid, wait{pod, now}).first->second.pod = pod;
  }
  std::erase_if(waits_, [&](const auto& one) { return !pods.contains(one.first); });
}

std::optional<pods_end> pod_starts::end(bool has_begun) const {
  if (has_begun || wrong_.empty()) return std::nullopt;
  return pods_end{
      2,
      fmt::format("no pod of a host has run, and one cannot be started: {}: mend that, delete the job, and "
                  "submit it again",
                  wrong_)};
}

} // namespace dlrun::kubernetes
