#include "kubernetes/eviction_budget.hpp"

#include "kubernetes/json_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

bool is_in(const pod_record& pod, const host_sights& hosts) {
  const auto found = hosts.find(pod.slot);
  return found != hosts.end() && found->second.standing == host_standing::there && !pod.address.empty() &&
         found->second.address == pod.address;
}

bool does_run(const pod_record& pod) { return is_alive(pod) && pod.runs; }

/// A pod whose host is in and that ends takes along what it has; one that runs and whose host is
/// not in has yet to be given it.
bool is_settled(const pod_record& pod, const host_sights& hosts) {
  return does_run(pod) == is_in(pod, hosts);
}

} // namespace

std::string budget_of(const nlohmann::json& pod_template) {
  return text_in(member(member(pod_template, "metadata"), "annotations"), budget_annotation);
}

std::string budget_name_of(const std::string& job) { return job + "-hosts"; }

std::optional<std::uint32_t> eviction_budget::next(const std::map<std::string, pod_record>& pods,
                                                   const wanted_pods& wanted,
                                                   const std::optional<host_sights>& hosts, time_point now) {
  std::uint32_t run = 0;
  bool is_calm = true;
  for (const auto& [uid, pod] : pods) {
    if (pod.owner != wanted.owner) continue;
    if (does_run(pod)) ++run;
    is_calm = is_calm && hosts && is_settled(pod, *hosts);
  }
  if (hosts)
    is_calm =
        is_calm && std::ranges::none_of(*hosts, [](const auto& one) { return one.second.is_only_place; });
  if (!is_calm)
    calm_since_.reset();
  else if (!calm_since_)
    calm_since_ = now;
  const bool may_go = calm_since_ && now - *calm_since_ >= rules_.calm_for;
  const auto stay = !hosts ? 0U : may_go ? run - std::min(run, 1U) : std::max(run, wanted.count());
  if (now < not_before_ || told_ == stay) return std::nullopt;
  return stay;
}

} // namespace dlrun::kubernetes
