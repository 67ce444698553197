/// The simulated dispatcher, in the process of the coordinator, around the product's core.
#pragma once

#include "actors/data_dispatcher/data_dispatcher_core.hpp"
#include "tests/simulation/message.hpp"

#include <optional>

namespace dlrun::simulation {

class coordinator_process;
class world;

/// Not a process of its own: it dies and is frozen with its coordinator.
class dispatcher_process {
public:
  /// Reads its course from the journal: behind all writes of the dispatcher before.
  dispatcher_process(world& where, coordinator_process& in, incarnation self);

  void receive(const message& what);
  void tick();
  /// The operator's undo.
  void go_back(const data_dispatcher::wanted_change& wanted);

  data_dispatcher::data_dispatcher_core& core() { return core_; }
  /// Carries out what the core says.
  void perform(const data_dispatcher::data_dispatcher_actions& actions);

private:
  void perform_one(const data_dispatcher::to_worker& order);
  void perform_one(const data_dispatcher::to_ps_shard& order);
  void perform_one(const data_dispatcher::to_coordinator& order);
  void perform_one(const data_dispatcher::journal_course& order);
  void perform_one(const data_dispatcher::decision_made& order);
  void check_lease(worker_id to) const;

  world& world_;
  coordinator_process& in_;
  data_dispatcher::data_dispatcher_core core_;
  bool course_was_lost_;                         ///< when it began: one that began before does not know (R41)
  std::optional<std::uint64_t> wanted_revision_; ///< that the operator asked it for
};

} // namespace dlrun::simulation
