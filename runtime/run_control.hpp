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

/// What the answers come from.
struct run_control_parts {
  caf::actor_system& system; ///< outlives the run_control
  spec::JobSpec spec;        ///< of the job
  std::shared_ptr<const agent::run_board> board;
  protocol::agent_actor agent;
  token_maker make_token{};
  std::shared_ptr<agent::routed_launcher> hosts{}; ///< null of a job on one host
  std::shared_ptr<agent::drain_desk> drains{};     ///< likewise
  std::function<std::vector<std::string>()> held_up_by = [] { return std::vector<std::string>{}; };
};

/// Answers requests to the root of a run. Called on the thread of the control socket, and keeps it
/// waiting for nothing; a number of workers has 5 s to be journaled. The answer to `scale N` is
/// {"workers":N}, to `token S` that of the token_maker, to `drain HOST` and `undrain HOST`
/// {"host":HOST,"text":what is told}; or an error, {"error":text,"exit_code":n}.
class run_control {
public:
  explicit run_control(run_control_parts parts)
      : parts_{std::move(parts)}
      , logs_{parts_.system, parts_.agent, parts_.hosts} {}

  void answer(const std::string& request, const agent::control_reply& reply) const;

private:
  std::string answer_at_once(const std::string& request) const;
  std::string status() const;
  std::string token(const std::string& lifetime) const;
  void scale(const std::string& workers, const agent::control_reply& reply) const;
  void drain(const std::string& request, const agent::control_reply& reply) const;

  run_control_parts parts_;
  host_logs logs_;
};

} // namespace dlrun::runtime
