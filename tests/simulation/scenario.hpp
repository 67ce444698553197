/// Everything that a seed decides before the run: what is trained, by how many, how bad the network
/// is, which faults happen.
#pragma once

#include "actors/protocol/durability.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"
#include "tests/simulation/hosts_plan.hpp"
#include "tests/simulation/symbolic.hpp"

#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace dlrun::simulation {

enum class fault_kind : std::uint8_t {
  kill_worker,
  kill_all_workers,
  kill_ps_shard, ///< back from its disk; where nothing is durable it ends the job
  kill_host,     ///< a worker and a PS shard at once
  zombie_worker, ///< frozen and taken for dead: replaced, and thaws later
  zombie_ps_shard,
  freeze_worker,
  freeze_ps_shard,
  freeze_coordinator, ///< with the dispatcher in its process
  restart_dispatcher,
  partition,
  scale_workers,  ///< the operator wants another number of them
  preempt_worker, ///< SIGTERM from outside, and SIGKILL after a while
  // only where state is durable
  kill_coordinator,
  zombie_coordinator,
  depose_coordinator, ///< taken for dead, and lives: only where the journal is elsewhere
  burst,              ///< several kills within milliseconds
  cut_power,          ///< everything dies, what is not synced may be lost, the job is resumed
  lose_journal,       ///< the coordinator's, not the shards' disks
  lose_disk,          ///< of one PS shard
  fill_disk,          ///< of one PS shard: it takes no writes for a while
  go_back,            ///< the operator's undo
  put_back_store,     ///< an older copy in the place of that of one PS shard, between two of its starts
  put_back_journal,   ///< older data in the place of the coordinator's
  move_ps_shard,      ///< it is to move, or to stay after all; what memory has of it stays behind
};
inline constexpr int fault_kinds = 25;
std::string_view to_string(fault_kind kind);

/// Records of a slot that end whoever computes them together.
struct poison {
  step_id step;
  slot_id slot;
  std::set<std::uint32_t> records;
  bool hangs = false; ///< it takes the agent a while to see that
};

/// A slot whose workers somebody kills from outside, again and again.
struct hunted_slot {
  step_id step;
  slot_id slot;
  int times = 0;
};

struct planned_fault {
  protocol::duration at{};
  fault_kind kind = fault_kind::kill_worker;
};

/// "Swarm" testing: each kind of fault is on or off, at its own rate, in each seed.
struct scenario {
  std::uint64_t seed = 0;
  job_shape job;
  std::uint32_t workers = 1;
  bool scales = false;           ///< the operator asks for other numbers of workers
  std::uint32_t workers_max = 1; ///< up to this one
  std::uint32_t bound = 1;       ///< B of R7
  protocol::durability durability = protocol::durability::off;
  bool syncs_each_step = false;     ///< `durability.sync: power`
  bool evaluates = true;            ///< version N
  std::set<version_id> evaluations; ///< versions before N to evaluate
  std::uint64_t ahead_max = 2;      ///< evaluations that training may leave behind
  std::uint64_t patience = 0;       ///< not 0: evaluations without a better one stop the training
  bool keeps_best = false;          ///< the snapshot of the best evaluation stays
  std::vector<simulation::poison> poison;
  std::uint64_t records_min = 1; ///< of a slot, for this model
  hunted_slot hunted;
  protocol::duration max_recovery{};
  // network
  double loss = 0, duplication = 0,
         slowness = 0; ///< probability a message; a slow one takes 20 times as long
  // speeds, milliseconds
  double slot_ms = 1, apply_ms = 1, log_ms = 1, snapshot_ms = 1, journal_ms = 1, start_ms = 5;
  bool journal_is_remote = false; ///< term and contents are asked for one after the other
  double journal_silence = 0;     ///< probability that a write to it gets no answer
  double damage = 0; ///< probability that a PS shard finds its newest snapshot damaged when it starts
  std::vector<double> slowness_of_worker;
  std::optional<worker_id> stuck;    ///< gets through no computation, and is never silent
  protocol::duration period{};       ///< of every timer
  protocol::duration silent_after{}; ///< of the dispatcher
  std::vector<planned_fault> faults;
  hosts_plan hosts;           ///< one, unless several are asked for
  protocol::duration calm{};  ///< no faults and a perfect network from here on
  protocol::duration limit{}; ///< done by then, or liveness is broken

  bool is_durable() const { return durability != protocol::durability::off; }
};

scenario draw_scenario(std::uint64_t seed);
/// The same on two to four hosts. There what is lost with a process is always on a disk, and the
/// journal is not lost.
scenario draw_scenario_of_hosts(std::uint64_t seed);

} // namespace dlrun::simulation
