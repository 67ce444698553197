/// pod_service: the threads that keep the pods of a job's hosts as they are wanted.
#pragma once

#include "kubernetes/api_client.hpp"
#include "kubernetes/host_pods.hpp"
#include "kubernetes/pod_requests.hpp"

#include <dlrun/error.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

/// One thread watches, another one looks ten times a second at what is to be done, each with a
/// connection of its own. Both end with it, after a request in hand (3 s at most).
class pod_service {
public:
  /// @returns bad_usage when libcurl cannot be loaded.
  static result<std::unique_ptr<pod_service>> start(const api_place& place, const pods_source& source,
                                                    const host_pods_options& options);
  virtual ~pod_service() = default;

  // any thread, as host_pods
  virtual void hosts_are(host_sights hosts) = 0;
  virtual void hosts_come(host_sights hosts) = 0;
  virtual void pause() = 0;
  virtual std::optional<pods_end> end() const = 0;
  virtual std::vector<std::string> held_up_by() const = 0;
  virtual std::string why_not_in(const arriving_pod& who) const = 0;
};

} // namespace dlrun::kubernetes
