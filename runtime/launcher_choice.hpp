/// How the roles of a job are started: as threads of this process, as processes, or on several
/// hosts.
#pragma once

#include "actors/agent/process/child_command.hpp"
#include "actors/agent/role_launcher.hpp"
#include "actors/common/job_context.hpp"
#include "actors/link/process_link.hpp"
#include "actors/protocol/handles.hpp"
#include "runtime/hosts_run.hpp"
#include "runtime/local_run.hpp"
#include "runtime/room_wait.hpp"
#include "runtime/root_secrets.hpp"

#include <dlrun/error.hpp>
#include <functional>
#include <memory>
#include <spdlog/logger.h>
#include <string>

namespace dlrun::runtime {

/// A launcher, and what goes with it.
struct launcher_choice {
  std::shared_ptr<agent::role_launcher> launcher;
  std::function<void(const protocol::agent_actor&)> introduce; ///< it learns how roles find the agent
  std::unique_ptr<link::process_link> link;                    ///< to roles of other processes
  std::unique_ptr<hosts_run> hosts{};                          ///< of a run on several hosts
};

/// What processes of roles execute. @param named path of that program; "": this one
result<agent::executable> program_of_roles(const std::string& named);

/// Roles as actors of this process.
result<launcher_choice> choose_threads(caf::actor_system& system,
                                       const std::shared_ptr<const common::job_context>& job);

/// Roles as processes: of this host, or of those of `options`, which can reach this one from now
/// on.
/// @param secrets of a run on several hosts, else null
result<launcher_choice>
choose_processes(caf::actor_system& system, const std::shared_ptr<const common::job_context>& job,
                 const local_run_options& options, const std::shared_ptr<root_secrets>& secrets,
                 const std::shared_ptr<spdlog::logger>& log, const hosts_callbacks& asks);

} // namespace dlrun::runtime
