/// How many workers the operator wants, and how many the coordinator has journaled (rule R32, the
/// agent's half).
#pragma once

#include "actors/protocol/scale_messages.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>

namespace dlrun::agent {

/// Bounds of the number of workers, for who asks for one.
struct scale_limits {
  std::uint32_t least = 1; ///< cluster.workers_min
  std::uint32_t most = 1;  ///< cluster.workers_max, or what stands for it
  std::uint32_t slots = 1; ///< K

  /// "" if a job may have so many.
  std::string why_refused(std::uint32_t workers) const {
    if (workers < least)
      return fmt::format("{} workers are too few: this job has at least {} (cluster.workers_min). "
                         "'dlrun stop' ends a job",
                         workers, least);
    if (workers > most)
      return fmt::format("{} workers are too many: this job has at most {}. A step has {} slots, and more "
                         "workers than slots have nothing to do; 'dlrun resume --set "
                         "cluster.workers_max=N' allows others",
                         workers, most, slots);
    return {};
  }
};

/// Pure: nothing is acted on before the coordinator has said that it is journaled. The newest
/// request is told to each coordinator until it has said so: one that has lost its journal too.
class scale_orders {
public:
  /// @param agent random number of this process  @param workers that run before anybody asks
  scale_orders(std::uint64_t agent, std::uint32_t workers)
      : order_{agent, 0, workers}
      , heard_{agent, 0, workers} {}

  /// The operator wants so many. @returns the number of the request.
  std::uint64_t ask(std::uint32_t workers) {
    ++order_.request;
    order_.workers = workers;
    return order_.request;
  }
  /// Another coordinator has come up.
  void forget_coordinator() { coordinator_knows_ = 0; }
  /// A coordinator's word. @returns how many are to run now, if that is another number.
  std::optional<std::uint32_t> hear(const protocol::workers_wanted& word) {
    if (word.agent != order_.agent) return std::nullopt;
    coordinator_knows_ = std::max(coordinator_knows_, word.request);
    if (word.request < heard_.request) return std::nullopt; // of one that is deposed, or has no journal
    const auto before = heard_.workers;
    heard_ = word;
    if (before == word.workers) return std::nullopt;
    return word.workers;
  }
  /// What the coordinator that is up is to be told.
  std::optional<protocol::scale_job> due() const {
    return coordinator_knows_ < order_.request ? std::optional{order_} : std::nullopt;
  }
  /// How many are to run.
  std::uint32_t workers() const { return heard_.workers; }

private:
  protocol::scale_job order_; ///< the newest
  protocol::workers_wanted heard_;
  std::uint64_t coordinator_knows_ = 0; ///< request that the one that is up has answered
};

} // namespace dlrun::agent
