/// The pods of a job's hosts, which the root in its control pod makes and replaces.
#pragma once

#include "actors/agent/run_board.hpp"
#include "kubernetes/pod_service.hpp"

#include <dlrun/error.hpp>
#include <memory>
#include <string>

namespace dlrun::cli {

/// What the hosts of Job `job` are, as far as their pods are concerned.
kubernetes::host_sights sights_of(const std::string& job, const std::vector<agent::host_view>& hosts);

/// Of a control pod. Pods are made from begin() on, as long as it lives; what it leaves goes on.
class pods_hosts {
public:
  /// @param job name of the Job of the control pod
  explicit pods_hosts(std::string job)
      : job_{std::move(job)} {}

  /// @returns bad_usage in what is no pod, or one without a token or a template for others.
  result<void> begin();
  void see(const agent::run_snapshot& now);

private:
  std::string job_;
  std::unique_ptr<kubernetes::pod_service> service_; ///< null before begin()
};

} // namespace dlrun::cli
