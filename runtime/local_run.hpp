/// Runs a job: this process is its root and agent.
#pragma once

#include "actors/agent/hosted_roles.hpp"
#include "runtime/hosts_plan.hpp"
#include "runtime/prepared_job.hpp"
#include "runtime/run_observer.hpp"

#include <dlrun/report.hpp>
#include <optional>

namespace dlrun::runtime {

struct local_run_options {
  std::filesystem::path run_dir;
  /// What the first start of the coordinator is called; larger than any in the journal of the run
  /// folder.
  incarnation coordinator{1};
  /// Executed by the processes of the roles; "" is the program of this process.
  std::string role_program{};
  /// The hosts to use; nothing: this one alone. check_for_hosts() comes first.
  std::optional<hosts_plan> hosts{};
  /// Of a run that is resumed: nothing of the job was changed, so what an earlier root started on
  /// other hosts may keep running.
  bool is_same_job = false;
  /// The folder was made for this: it goes again if nothing can be started.
  bool is_new = false;
  /// R38: the job is complete, and its stores are to be brought from `hosts`. Nothing is trained.
  std::optional<agent::last_stores> gathers{};
};

/// Starts the roles, answers `dlrun status` and `dlrun stop`, and waits for the end. Blocks.
/// Touches no signal handler; blocks SIGPIPE in the calling thread, and so in those it makes.
/// @returns the report, which is in the folder too; an error when nothing could be started, and
/// role_lost when the job is complete, but the last versions of some PS shards are on other hosts
/// still: these wait for another root then, as for one that was killed.
result<report> run_locally(const prepared_job& prepared, const local_run_options& options,
                           run_observer& observer);

} // namespace dlrun::runtime
