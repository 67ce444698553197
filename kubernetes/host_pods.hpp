/// host_pods: keeps the pods of a job's hosts as they are wanted.
#pragma once

#include "kubernetes/pod_plan.hpp"
#include "kubernetes/pod_requests.hpp"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

struct host_pods_options {
  std::function<void(const std::string&)> tell; ///< what was done, and why
  std::function<void(const std::string&)> warn; ///< once while the same is wrong
  /// Between two looks at what users want. Before pods are made it is looked at in any case.
  std::chrono::milliseconds look_period{2000};
  /// Of one request, and all its attempts.
  std::chrono::milliseconds request_max{3000};
  pod_rules rules{};
};

/// One pass after another: reads what is wanted, asks the plan, does what it says. What can be done
/// later waits for the next pass. Thread-safe but for pass(), which is one thread's.
class host_pods {
public:
  /// `requests` and `client`, which it uses, outlive it.
  host_pods(pod_requests& requests, const api_client& client, host_pods_options options);

  /// What the watch tells.
  void on_news(pod_news news);
  /// What the job says of its hosts.
  void hosts_are(host_sights hosts);
  /// Blocks while it asks.
  void pass();

private:
  bool look();
  void carry_out(const std::vector<pod_action>& actions);
  std::optional<api_refusal> carry_out(const create_pod& what);
  std::optional<api_refusal> carry_out(const delete_pod& what);
  void complain(const std::string& why);
  time_point give_up() const;

  pod_requests& requests_;
  const api_client& client_;
  host_pods_options options_;
  pod_plan plan_;
  wanted_pods wanted_{};
  std::optional<time_point> looked_{};
  std::string complained_{};
  std::mutex mutex_;
  std::vector<pod_news> news_; ///< guarded by mutex_, as is the next
  std::optional<host_sights> hosts_{};
};

} // namespace dlrun::kubernetes
