/// What one start of a role is given.
#pragma once

#include "actors/common/local_roles.hpp"
#include "actors/common/progress_word.hpp"
#include "actors/common/retained_memory.hpp"
#include "actors/link/process_link.hpp"
#include "actors/protocol/handles.hpp"

#include <memory>
#include <optional>
#include <spdlog/logger.h>
#include <string>

namespace dlrun::common {

/// Everything that one start of a role is given. `Job` is what the role knows of its job:
/// job_facts, or job_context.
template <class Job>
struct basic_role_context {
  protocol::role_name role;
  protocol::fence self;
  std::shared_ptr<const Job> job;
  /// The roles of this process.
  std::shared_ptr<local_roles> local = std::make_shared<local_roles>();
  /// To those of other processes; outlives the role. Null where all roles share the process.
  link::process_link* link = nullptr;
  protocol::agent_actor agent{};
  /// Where the coordinator is; unset for the coordinator itself.
  std::optional<protocol::endpoint> coordinator{};
  dlrun::incarnation coordinator_incarnation{};
  std::shared_ptr<progress_word> progress{}; ///< a worker's, in a process of its own; else null
  std::shared_ptr<spdlog::logger> log{};
  std::string device{};                      ///< a worker's, once it has one (protocol::join); else empty
  protocol::opened_store opened{};           ///< a PS shard's, once it has one (protocol::join)
  std::shared_ptr<ps_shard_memory> memory{}; ///< a PS shard's, in a process of its own; else null

  protocol::known_coordinator known_coordinator() const {
    return {coordinator_incarnation, coordinator ? coordinator->process : 0};
  }

  /// The same for a role that knows less of the job.
  template <class Less>
  basic_role_context<Less> for_less() const {
    return {role,     self, job,    local,  link,  agent, coordinator, coordinator_incarnation,
            progress, log,  device, opened, memory};
  }
};

} // namespace dlrun::common
