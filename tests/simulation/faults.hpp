/// Carries out the faults that a scenario plans.
#pragma once

#include "tests/simulation/scenario.hpp"
#include "tests/simulation/world.hpp"

#include <vector>

namespace dlrun::simulation {

class agent_process;
class coordinator_process;

class fault_injector {
public:
  fault_injector(world& where, agent_process& agent, coordinator_process& coordinator);

  /// Plans all of them, and the calm after them.
  void plan();
  /// A PS shard that keeps nothing was lost: the job must end as failed.
  bool ended_the_job() const { return ended_the_job_; }

private:
  void inject(fault_kind kind);
  void kill(const std::vector<process*>& victims, bool as_zombies);
  void freeze_for_a_while(process* which);
  void partition();
  process* some(protocol::role_kind kind);
  bool is_bearable(const std::vector<process*>& victims, bool as_zombies) const;
  bool has_zombie(protocol::role_kind kind) const;

  world& world_;
  agent_process& agent_;
  coordinator_process& coordinator_;
  bool ended_the_job_ = false;
};

} // namespace dlrun::simulation
