/// pod_starts: pods that do not come to run, why, and what follows.
#pragma once

#include "kubernetes/api_client.hpp"
#include "kubernetes/pod_record.hpp"
#include "kubernetes/pods_end.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

/// Of the template for pods of hosts: seconds, as in "60".
inline constexpr auto patience_annotation = "dlrun/pending-patience-s";
inline constexpr std::uint32_t patience_max_s = 24 * 3600;

struct start_rules {
  /// From here on people are told what a pod waits for.
  std::chrono::milliseconds patience{60'000};
};

/// As the template says; what it does not say is as it is by default.
start_rules start_rules_of(const nlohmann::json& pod_template);

/// Pure. Nobody but the cluster can help a pod for which no node has room, or whose container
/// cannot be made: the job trains on, or waits, and people are told why. One thing is hopeless: no
/// pod of a host has ever run, and all that one hears is that an image or a configuration is wrong.
class pod_starts {
public:
  explicit pod_starts(start_rules rules = {})
      : rules_{rules} {}

  /// @param pods by uid, as the server tells them now  @returns what people are to be told, once
  std::vector<std::string> look(const std::map<std::string, pod_record>& pods, time_point now);
  /// Which pods do not run, for people.
  const std::vector<std::string>& told() const { return told_; }
  /// Nothing: it goes on. @param has_begun whether the job has
  std::optional<pods_end> end(bool has_begun) const;

private:
  struct wait {
    pod_record pod;
    time_point since{};
    bool is_told = false;
  };
  void see(const std::map<std::string, pod_record>& pods, time_point now);

  start_rules rules_;
  std::map<std::string, wait> waits_; ///< by uid
  bool has_run_ = false;              ///< one of them, ever
  std::optional<time_point> wrong_since_;
  std::string wrong_{}; ///< what has been wrong for so long; "": nothing
  std::vector<std::string> told_;
};

} // namespace dlrun::kubernetes
