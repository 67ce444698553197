/// How many workers are wanted (rule R32).
#pragma once

#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/scale_messages.hpp"

#include <cstdint>
#include <optional>

namespace dlrun::coordinator {

/// What the journal keeps of it.
struct journaled_workers {
  std::uint32_t workers = 0;
  std::uint32_t specified = 0; ///< what the specification wanted then
  std::uint64_t agent = 0;     ///< whose request it was
  std::uint64_t request = 0;   ///< its number there

  bool operator==(const journaled_workers&) const = default;
};

struct workforce_config {
  std::uint32_t specified = 1; ///< by the specification
  std::uint32_t most = 1;      ///< that there may be
  std::uint64_t agent = 0;     ///< whose requests count
  protocol::planted_bug bug = protocol::planted_bug::none;
};

/// Pure: knows the number of workers that is wanted and journaled. A number that was journaled for
/// an earlier agent holds while cluster.workers is what it was then: a user who changes it at a
/// resume wants the new number.
class workforce {
public:
  workforce(workforce_config config, const std::optional<journaled_workers>& kept)
      : config_(config)
      , wanted_{config.agent, 0, config.specified} {
    if (!kept || kept->specified != config.specified) return;
    wanted_.workers = kept->workers;
    if (kept->agent == config.agent) wanted_.request = kept->request;
    asked_ = wanted_.request;
  }

  /// A request of the agent. @returns what is to be journaled, then told to on_journaled(); nothing
  /// for one that is known or not for this job.
  std::optional<journaled_workers> on_order(const protocol::scale_job& order) {
    if (order.agent != config_.agent || order.request <= asked_) return std::nullopt;
    if (order.workers == 0 || order.workers > config_.most) return std::nullopt;
    asked_ = order.request;
    if (is_planted(config_.bug, protocol::planted_bug::scale_early))
      wanted_ = {order.agent, order.request, order.workers};
    return journaled_workers{order.workers, config_.specified, order.agent, order.request};
  }
  void on_journaled(const journaled_workers& written) {
    if (written.agent != config_.agent)
      wanted_.workers = written.workers; // asked by an agent before this one
    else if (written.request > wanted_.request)
      wanted_ = {written.agent, written.request, written.workers};
  }
  /// R35: there is another agent, which counts its requests anew.
  void serve(std::uint64_t agent) {
    config_.agent = agent;
    wanted_ = {agent, 0, wanted_.workers};
    asked_ = 0;
  }

  /// What is journaled.
  const protocol::workers_wanted& wanted() const { return wanted_; }

private:
  workforce_config config_;
  protocol::workers_wanted wanted_;
  std::uint64_t asked_ = 0; ///< newest request that is journaled or on its way there
};

} // namespace dlrun::coordinator
