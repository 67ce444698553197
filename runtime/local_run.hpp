/// Runs a job: this process is its root and agent.
#pragma once

#include "actors/agent/last_stores.hpp"
#include "base/pulse.hpp"
#include "runtime/hosts_plan.hpp"
#include "runtime/prepared_job.hpp"
#include "runtime/root_home.hpp"
#include "runtime/run_observer.hpp"
#include "runtime/run_record.hpp"

#include <dlrun/report.hpp>
#include <memory>
#include <optional>

namespace dlrun::runtime {

struct local_run_options {
  std::filesystem::path run_dir;
  /// Incarnation of the coordinator's first start; larger than any in the journal of the run.
  incarnation coordinator{1};
  /// The program that the processes of roles execute; "": that of this process.
  std::string role_program{};
  /// The hosts to use; nothing: this one alone. check_for_hosts() comes first.
  std::optional<hosts_plan> hosts{};
  /// For a run that is resumed: nothing of the job was changed, so roles that an earlier root
  /// started on other hosts may keep running.
  bool is_same_job = false;
  /// `durability.replicas: auto` chose that there are copies: as hosted_roles_config.
  bool copies_may_wait = false;
  /// Of a run that is resumed: carried out when its hosts are there, before anything starts.
  std::optional<run_change> change{};
  /// The folder was made for this call: it is removed again if nothing can be started.
  bool is_new = false;
  /// R38: the job is complete, and its stores are to be brought from `hosts`. Nothing is trained.
  std::optional<agent::last_stores> gathers{};
  /// R40: what makes this process the root, beside the lock of the folder. Null where its journal
  /// is in no etcd.
  std::shared_ptr<root_home> home{};
  /// Of this process, which is ready once the job has begun.
  std::shared_ptr<base::pulse> pulse = std::make_shared<base::pulse>();
};

/// Runs a job: starts the roles, answers `dlrun status`, `dlrun stop` and others, and waits for the
/// end. Blocks. Touches no signal handler; blocks SIGPIPE in the calling thread, and so in threads
/// that it makes.
/// @returns the report, which is in the folder too; an error when nothing could be started;
/// role_lost when the job is complete, but the last versions of some PS shards are still on other
/// hosts, or `observer` could not deliver the model; the hosts then wait for another root, as after
/// a root that was killed.
result<report> run_locally(const prepared_job& prepared, const local_run_options& options,
                           run_observer& observer);

} // namespace dlrun::runtime
