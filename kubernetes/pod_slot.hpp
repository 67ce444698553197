/// pod_slot: a host of a job that pods are made for.
#pragma once

#include <compare>
#include <cstdint>

namespace dlrun::kubernetes {

/// Pods of a group have one template.
enum class pod_group : std::uint8_t {
  hosts, ///< they take workers, and PS shards too
  ps     ///< they take PS shards and their copies alone
};

/// Host JOB-hosts-I or JOB-ps-I of a job.
struct pod_slot {
  pod_group group = pod_group::hosts;
  std::uint32_t index = 0;

  constexpr pod_slot() = default;
  constexpr pod_slot(pod_group of, std::uint32_t number)
      : group{of}
      , index{number} {}
  /// JOB-hosts-`number`.
  constexpr pod_slot(std::uint32_t number) // a number is one of the hosts
      : index{number} {}

  friend constexpr auto operator<=>(const pod_slot&, const pod_slot&) = default;
};

} // namespace dlrun::kubernetes
