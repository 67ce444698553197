/// What the root of a run answers to `dlrun status`, `stop`, `scale`, `token`, `drain` and `logs`.
#pragma once

#include "actors/agent/drain_desk.hpp"
#include "actors/agent/run_board.hpp"
#include "actors/protocol/handles.hpp"
#include "proto/job_spec.pb.h"
#include "runtime/host_logs.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// Makes a token by which a host may join, as JSON for `dlrun token`: its `token`, `address` and
/// `valid_s`.
using token_maker = std::function<result<std::string>(std::chrono::seconds lifetime)>;

/// Answers requests to the root of a run. Called on the thread of the control socket, and keeps it
/// waiting for nothing; a number of workers has 5 s to be journaled. The answer to `scale N` is
/// {"workers":N}, to `token S` that of the token_maker, to `drain HOST` and `undrain HOST`
/// {"host":HOST,"text":what is told}; or an error, {"error":text,"exit_code":n}.
class run_control {
public:
  /// `system` outlives this.
  run_control(caf::actor_system& system, spec::JobSpec spec, std::shared_ptr<const agent::run_board> board,
              const protocol::agent_actor& agent, token_maker make_token,
              std::shared_ptr<agent::routed_launcher> hosts, std::shared_ptr<agent::drain_desk> drains,
              std::function<std::vector<std::string>()> held_up_by)
      : system_{system}
      , spec_{std::move(spec)}
      , board_{std::move(board)}
      , agent_{agent}
      , make_token_{std::move(make_token)}
      , logs_{system, agent, std::move(hosts)}
      , drains_{std::move(drains)}
      , held_up_by_{std::move(held_up_by)} {}

  void answer(const std::string& request, const agent::control_reply& reply) const;

private:
  std::string answer_at_once(const std::string& request) const;
  std::string status() const;
  std::string token(const std::string& lifetime) const;
  void scale(const std::string& workers, const agent::control_reply& reply) const;
  void drain(const std::string& request, const agent::control_reply& reply) const;

  caf::actor_system& system_;
  spec::JobSpec spec_; ///< of the job
  std::shared_ptr<const agent::run_board> board_;
  protocol::agent_actor agent_;
  token_maker make_token_;
  host_logs logs_;
  std::shared_ptr<agent::drain_desk> drains_; ///< null of a job on one host
  std::function<std::vector<std::string>()> held_up_by_;
};

} // namespace dlrun::runtime
