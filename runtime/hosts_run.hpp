/// A run on several hosts, at its root.
#pragma once

#include "runtime/host_commands.hpp"
#include "runtime/job_identity.hpp"
#include "runtime/prepared_job.hpp"
#include "runtime/root_secrets.hpp"
#include "runtime/run_observer.hpp"

#include <memory>

namespace dlrun::runtime {

/// Can the job run on several hosts? @returns bad_spec for one that cannot leave its process.
result<void> check_for_hosts(const prepared_job& job);

/// Of a run: who issues its certificates, what the root shows itself, and what it keeps of both.
struct identities {
  std::shared_ptr<const job_identity> job;
  std::shared_ptr<security::tls_context> own;
  std::shared_ptr<root_secrets> secrets;
  bool takes_over = false; ///< what an earlier root started keeps running (R35)
};

/// How the root is reached by the other hosts, and who it is to them: `who` has the secrets.
/// @returns system.
result<link::remote_access> open_to_hosts(const hosts_plan& plan, identities& who);

/// The launcher of such a run, and the agents that it starts.
class hosts_run {
public:
  /// @param here launcher of roles on this host
  /// @param agent_address where the agents of hosts find the agent of the job
  static result<std::unique_ptr<hosts_run>> create(const hosts_plan& plan,
                                                   const std::shared_ptr<const common::job_context>& job,
                                                   std::shared_ptr<agent::role_launcher> here,
                                                   const std::string& agent_address, const identities& who);

  const std::shared_ptr<agent::routed_launcher>& launcher() const { return launcher_; }
  /// Blocks until the agents of all hosts are there, with the same data. @returns bad_usage naming
  /// the host and the reason, timed_out, or interrupted when `observer` asks to stop.
  /// @param agent the job's, which has the launcher
  result<void> wait_until_there(const protocol::agent_actor& agent, run_observer& observer);
  /// Blocks until those that were dismissed have ended, for a few seconds at most.
  void wait_until_gone();

private:
  hosts_run(std::shared_ptr<host_commands> commands, std::shared_ptr<agent::routed_launcher> launcher,
            std::chrono::seconds there_patience, std::string way_out)
      : commands_{std::move(commands)}
      , launcher_{std::move(launcher)}
      , there_patience_{there_patience}
      , way_out_{std::move(way_out)} {}

  std::shared_ptr<host_commands> commands_;
  std::shared_ptr<agent::routed_launcher> launcher_;
  std::chrono::seconds there_patience_;
  std::string way_out_; ///< where a host does not come
};

} // namespace dlrun::runtime
