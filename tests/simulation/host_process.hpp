/// The simulated agent of another host, around the product's host_agent_core.
#pragma once

#include "actors/agent/host_agent_core.hpp"
#include "tests/simulation/beat_line.hpp"
#include "tests/simulation/local_roles.hpp"
#include "tests/simulation/process.hpp"

#include <vector>

namespace dlrun::simulation {

inline protocol::role_name host_agent_role(std::uint32_t host) {
  return {protocol::role_kind::host_agent, host};
}

class host_process : public process {
public:
  /// Started by the command of the `root`th agent of the job.
  host_process(world& where, std::uint32_t host, std::uint64_t boot, std::uint64_t root);

  void start() override;
  void receive(const message& what) override;
  /// The lifeline: nothing that it runs outlives it.
  void died() override;
  /// The TCP connection to the root is gone; packets may pass.
  void lose_link();
  std::uint64_t boot() const { return self().incarnation.value; }
  std::uint64_t root() const { return root_; }

private:
  void on_tick();
  bool is_link_over() const;
  void say_hello();
  void note_start(const protocol::role_name& role, incarnation start);
  void carry_out(const agent::host_agent_actions& actions);
  void carry_out_one(const agent::launch_role& action);
  void carry_out_one(const agent::end_role& action);
  void carry_out_one(const agent::tell_agent& action);
  void carry_out_one(const agent::leave& action);

  std::map<std::pair<protocol::role_name, incarnation>, std::uint64_t> ordered_by_; ///< by which agent
  std::uint64_t started_by_; ///< the agent of the job that ordered its start
  std::uint64_t root_;
  agent::host_agent_core core_;
  beat_line beats_;
  local_roles roles_;
  protocol::duration connection_lasts_; ///< when packets do not pass
};

} // namespace dlrun::simulation
