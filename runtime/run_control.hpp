/// What the root of a run answers to `dlrun status`, `stop`, `scale` and `logs`.
#pragma once

#include "actors/agent/run_board.hpp"
#include "actors/protocol/handles.hpp"
#include "proto/job_spec.pb.h"
#include "runtime/host_logs.hpp"

#include <memory>
#include <string>

namespace dlrun::runtime {

/// Called on the thread of the control socket; waits up to 5 s for a number of workers to be
/// journaled. `scale N` is answered by {"workers":N}, or {"error":text,"exit_code":n}.
class run_control {
public:
  /// `system` outlives this.
  run_control(caf::actor_system& system, spec::JobSpec spec, std::shared_ptr<const agent::run_board> board,
              const protocol::agent_actor& agent, std::shared_ptr<agent::routed_launcher> hosts)
      : system_{system}
      , spec_{std::move(spec)}
      , board_{std::move(board)}
      , agent_{agent}
      , logs_{system, agent, std::move(hosts)} {}

  void answer(const std::string& request, const agent::control_reply& reply) const;

private:
  std::string answer_at_once(const std::string& request) const;
  std::string scale(const std::string& workers) const;

  caf::actor_system& system_;
  spec::JobSpec spec_; ///< of the job
  std::shared_ptr<const agent::run_board> board_;
  protocol::agent_actor agent_;
  host_logs logs_;
};

} // namespace dlrun::runtime
