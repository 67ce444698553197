/// Which GPU of a host each start of a worker computes on, and which ones get no more workers.
#pragma once

#include "actors/protocol/time.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// A GPU that gets no more workers.
struct avoided_gpu {
  std::uint32_t gpu = 0; ///< its number on that host
  std::string host;
  std::string reason; ///< for people: how often it failed, what it said last, and which GPUs are left
  bool operator==(const avoided_gpu&) const = default;
};

/// Pure: of one host. A start gets the GPU that has the fewest workers; of equals, for worker i the
/// i-th of the job, from the start again after the last, or the next one after that. One that fails
/// three times within a minute is avoided while another is left: all compute the same bits. What
/// was avoided stays so.
class gpu_choice {
public:
  /// @param gpus their numbers, in the order of cluster.gpus; none: workers compute on processors
  gpu_choice(std::string host, const std::vector<int>& gpus);

  /// For a start of that worker; to be given back at its end. Nothing where there are no GPUs.
  std::optional<std::uint32_t> take(std::uint32_t worker);
  /// That start is over.
  void give_back(std::uint32_t gpu);
  /// It ended since the GPU had failed, and this is what it said. @returns the GPU, if it is
  /// avoided from now on
  std::optional<avoided_gpu> on_failure(std::uint32_t gpu, const std::string& said, protocol::time_point now);

private:
  struct known_gpu {
    std::uint32_t number = 0;
    std::size_t workers = 0; ///< that compute there
    bool is_avoided = false;
    std::deque<protocol::time_point> failures{}; ///< not longer ago than counts
  };
  known_gpu* find(std::uint32_t gpu);
  std::vector<std::uint32_t> left() const;

  std::string host_;
  std::vector<known_gpu> gpus_;
};

} // namespace dlrun::agent
