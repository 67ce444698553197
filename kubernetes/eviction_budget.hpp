/// eviction_budget: how many pods of hosts have to stay, so that no eviction costs what was
/// committed.
#pragma once

#include "kubernetes/api_client.hpp"
#include "kubernetes/host_sights.hpp"
#include "kubernetes/pod_record.hpp"
#include "kubernetes/wanted_pods.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace dlrun::kubernetes {

/// Of the template for pods of hosts: the PodDisruptionBudget that guards them. Without it none
/// does.
inline constexpr auto budget_annotation = "dlrun/eviction-budget";
/// "": none guards them.
std::string budget_of(const nlohmann::json& pod_template);
/// That of a job.
std::string budget_name_of(const std::string& job);

struct budget_rules {
  /// So long all is to be well before a pod may go: copies come and go while hosts do.
  std::chrono::milliseconds calm_for{2000};
  /// Before the server is told again what it refused.
  std::chrono::milliseconds retry_after{2000};
};

/// Pure. Kubernetes evicts a pod where at least `minAvailable` others are ready. No budget can name
/// pods, so it is one for all: one may go while each host of a pod that runs is in the job and none
/// has what no other one has; else none: then as many have to stay as there will be, since one that
/// gets ready before its host is in the job would let another one go. A job that has not begun has
/// nothing to lose.
class eviction_budget {
public:
  explicit eviction_budget(budget_rules rules = {})
      : rules_{rules} {}

  /// @param wanted how many pods, and uid of what controls them  @param hosts nothing: the job does
  /// not say yet  @returns minAvailable, where the server does not know it
  std::optional<std::uint32_t> next(const std::map<std::string, pod_record>& pods, const wanted_pods& wanted,
                                    const std::optional<host_sights>& hosts, time_point now);
  void on_told(std::uint32_t what) { told_ = what; }
  /// Nobody knows what the server knows: its etcd may have been restored.
  void forget() { told_.reset(); }
  void on_refused(time_point now) { not_before_ = now + rules_.retry_after; }

private:
  budget_rules rules_;
  std::optional<time_point> calm_since_;
  std::optional<std::uint32_t> told_;
  time_point not_before_{};
};

} // namespace dlrun::kubernetes
