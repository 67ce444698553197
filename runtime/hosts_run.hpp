/// A run on several hosts, at its root.
#pragma once

#include "actors/agent/drain_desk.hpp"
#include "actors/agent/hosted_roles.hpp"
#include "runtime/enrolment_desk.hpp"
#include "runtime/host_bundles.hpp"
#include "runtime/host_commands.hpp"
#include "runtime/hosts_plan.hpp"
#include "runtime/job_identity.hpp"
#include "runtime/prepared_job.hpp"
#include "runtime/room_wait.hpp"
#include "runtime/root_secrets.hpp"
#include "runtime/run_observer.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace dlrun::runtime {

/// Checks that the job can run on these hosts, or on this one alone. @returns bad_spec for a job of
/// `cluster.placement: threads` on several hosts, and for one that wants copies on more hosts than
/// there are; bad_usage for hosts that the others
/// would look for on themselves.
result<void> check_for_hosts(const spec::JobSpec& job, const std::optional<hosts_plan>& hosts);

/// What a run on several hosts asks who runs it.
struct hosts_callbacks {
  file_writing write = writing_once(); ///< what is noted of hosts
  agent::join_check may_join = [](const agent::arriving_host&) { return result<void>{}; };
};

/// The identities of a run, and what its hosts are for: who issues its certificates, what the root
/// itself shows, and the secrets that it stores of both.
struct identities {
  std::shared_ptr<const job_identity> job;
  std::shared_ptr<security::tls_context> own;
  std::shared_ptr<root_secrets> secrets;
  bool takes_over = false; ///< what an earlier root started keeps running (R35)
  /// But it ends where the job is complete, and its stores are to be brought (R38).
  std::optional<agent::last_stores> gathers{};
  bool copies_may_wait = false; ///< as hosted_roles_config
  hosts_callbacks asks{};
};

/// Opens the ports at which other hosts reach the root, with the identities in `who`. @returns
/// system.
result<link::remote_access> open_to_hosts(const hosts_plan& plan, identities& who);

/// A token, and where it is to be used.
struct join_token {
  security::secret_text text;
  std::string address;
};

/// The launcher of a run on several hosts, together with the agents that it starts.
class hosts_run {
public:
  /// @param here launcher of roles on this host
  /// @param agent_address where the agents of hosts find the agent of the job
  static result<std::unique_ptr<hosts_run>> create(const hosts_plan& plan,
                                                   const std::shared_ptr<const common::job_context>& job,
                                                   std::shared_ptr<agent::role_launcher> here,
                                                   const std::string& agent_address, const identities& who);

  const std::shared_ptr<agent::routed_launcher>& launcher() const { return launcher_; }
  /// Hosts may join from now on, where the list lets them. @returns system.
  result<void> open(const protocol::agent_actor& agent);
  /// Makes a token for one host. Any thread. @returns bad_usage when no host may join,
  /// limit_exceeded.
  result<join_token> make_token(std::chrono::seconds lifetime) const;
  /// Blocks until the agents of all hosts are there, with the same data, and of others that join as
  /// many as are wanted; calls `meanwhile` ten times a second, whose error ends the wait. @returns
  /// bad_usage naming the host and the reason, timed_out, also for a host that was there before a
  /// root that takes over and may come back, or interrupted when `observer` asks to stop.
  result<void> wait_until_there(run_observer& observer, const std::function<result<void>()>& meanwhile);
  /// Of hosts other than the root's, which nothing can be moved off.
  agent::kept_drains drains() const;
  /// Changes run.record. @param is_same_job else what ran so far is of another job, and is not
  /// taken over
  result<void> change_record(const std::function<void(records::RunRecord&)>& change, bool is_same_job);
  /// Whether roles that an earlier root started keep running.
  bool takes_over() const { return takes_over_; }
  /// No host joins any more.
  void close_door();
  /// The same. Blocks until those that were dismissed have ended: the commands that started agents,
  /// then the agents, for so long each at most.
  void wait_until_gone(std::chrono::seconds patience);

private:
  hosts_run(std::shared_ptr<host_commands> commands, std::shared_ptr<agent::routed_launcher> launcher,
            std::shared_ptr<enrolment_desk> desk, std::shared_ptr<host_bundles> bundles,
            std::chrono::seconds there_patience, std::string way_out, bool takes_over)
      : commands_{std::move(commands)}
      , launcher_{std::move(launcher)}
      , desk_{std::move(desk)}
      , bundles_{std::move(bundles)}
      , there_patience_{there_patience}
      , way_out_{std::move(way_out)}
      , takes_over_{takes_over} {}

  std::shared_ptr<host_commands> commands_;
  std::shared_ptr<agent::routed_launcher> launcher_;
  std::shared_ptr<enrolment_desk> desk_; ///< null where no host may join
  std::shared_ptr<host_bundles> bundles_;
  std::chrono::seconds there_patience_;
  std::string way_out_; ///< where a host does not come
  bool takes_over_;
};

} // namespace dlrun::runtime
