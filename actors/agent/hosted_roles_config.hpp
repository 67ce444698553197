/// What hosted_roles is told of the job and of its hosts.
#pragma once

#include "actors/agent/drain_stage.hpp"
#include "actors/agent/host_admission.hpp"
#include "actors/agent/host_rules.hpp"
#include "actors/agent/last_stores.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/host_takes.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dlrun::agent {

struct hosted_roles_config {
  std::string root; ///< name of this host
  std::uint32_t root_cpus = 1;
  bool root_preemptible = false;
  protocol::host_takes root_takes = protocol::host_takes::any;
  std::string root_machine{};  ///< "": one of its own
  std::string root_beats_at{}; ///< number and UDP port of this host's beats
  /// The others: by name, with the cores they are to be used with; 0: those their agents tell of.
  std::map<std::string, std::uint32_t> hosts{};
  std::uint32_t threads_per_worker = 1;
  bool workers_need_gpus = false; ///< cluster.device is cuda
  std::uint32_t root_gpus = 0;    ///< that workers use here
  bool coordinator_moves = false; ///< its journal can be had from every host
  /// R37: `durability.replicas: auto` chose that there are copies. One for which no host is in use
  /// waits for one while others are drained; else it keeps the host that it has.
  bool copies_may_wait = false;
  /// R37: hosts that an earlier root of the run was to drain.
  std::map<std::string, drain_stage> drains{};
  std::vector<protocol::held_store> root_stores{}; ///< in the run folder
  /// Of a run that is resumed, the other hosts that it ever had, for people; "" of a new one.
  std::string hosts_before{};
  host_rules rules{};
  admission_rules joining{}; ///< its root is that above
  /// How long a PS shard waits for the host of its store when that is lost, before it begins
  /// elsewhere without a store, which costs the work since the last version that all can go back
  /// to.
  protocol::duration store_patience = std::chrono::seconds(10);
  std::uint64_t root_process = 0; ///< random number of the root's process
  /// This root goes on for one that is gone, with the roles that it finds (R35). False: an agent
  /// that another root started is let in no more.
  bool takes_over = false;
  /// Then: random numbers of the roots that ran the job as it is now. An agent that another one
  /// started is let in no more either: it may have been away while the job was changed.
  std::set<std::uint64_t> roots_of_same_job{};
  std::vector<returning_host> returning{}; ///< then: those that had joined it
  /// R38: the job is complete, and this root comes for what its stores hold. Nothing starts; what
  /// an earlier root left running is killed as it is told of.
  std::optional<last_stores> gathers{};
  /// Between two sendings of an order that has not been answered.
  protocol::duration repeat_after = std::chrono::milliseconds(500);
  protocol::planted_bug bug = protocol::planted_bug::none; ///< for the simulator
};

} // namespace dlrun::agent
