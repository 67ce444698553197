/// Carries out the faults that a scenario plans.
#pragma once

#include "actors/data_dispatcher/timeline_keeper.hpp"
#include "tests/simulation/host_faults.hpp"
#include "tests/simulation/job_agent.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/world.hpp"

#include <vector>

namespace dlrun::simulation {

class fault_injector {
public:
  explicit fault_injector(world& where);

  /// Starts the first agent, and so everything; again: `dlrun resume`.
  void start();

  /// Plans all of them, and the calm after them.
  void plan();
  /// A PS shard that keeps nothing was lost: the job must end as failed.
  bool ended_the_job() const { return ended_the_job_; }

private:
  void inject(fault_kind kind);
  void kill(const std::vector<process*>& victims, bool as_zombies);
  void freeze_for_a_while(process* which);
  void inject_durable(fault_kind kind);
  /// Its agent takes it for dead; it goes on.
  void depose(process* victim);
  void partition();
  void scale_workers();
  void preempt(process* worker);
  void move_ps_shard();
  void burst();
  void cut_power();
  void lose_journal();
  void copy_journal();
  void put_back(const coordinator_journal& copy);
  void lose_disk();
  void copy_store();
  void put_back(ps_shard_id shard, const simulated_store& copy);
  void fill_disk();
  void go_back();
  void go_back_to(version_id version);
  /// The operator asks until the journal has it.
  void ask_to_go_back(const data_dispatcher::wanted_change& wanted);
  process* some(protocol::role_kind kind);

  world& world_;
  job_agent* agent_ = nullptr;
  std::uint64_t agents_ = 0;
  bool ended_the_job_ = false;
  host_fault_injector hosts_;
};

} // namespace dlrun::simulation
