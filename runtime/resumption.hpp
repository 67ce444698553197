/// Going on with a run that was stopped or died.
#pragma once

#include "actors/agent/last_stores.hpp"
#include "runtime/hosts_plan.hpp"
#include "runtime/prepared_job.hpp"
#include "runtime/replicas_choice.hpp"
#include "runtime/root_home.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/run_record.hpp"

#include <dlrun/training.hpp>
#include <functional>
#include <memory>
#include <optional>

namespace dlrun::runtime {

struct resumption {
  run_folder folder;
  std::optional<prepared_job> job; ///< nothing when the run is completed: there is nothing left to train
  incarnation coordinator;         ///< what its next start is called
  /// Of a run that had other hosts: what is lost, and the way out, if it goes on without them; ""
  /// when nothing is.
  std::string left_behind;
  /// Where there is a job: what the run is changed to when it goes on. For local_run_options.
  std::optional<run_change> change{};
  bool is_same_job = false; ///< its specification is what it was, and so what `auto` in it became
  /// What became of durability.replicas, if there is something to say: it goes on with several
  /// hosts, or with another number than before.
  std::optional<replicas_choice> replicas{};
  /// R38: it is trained to its end, and there is a job again: these stores are on other hosts, or
  /// those have not heard of the end.
  std::optional<agent::last_stores> gathers{};
  /// Then: what is missing, and the way out; "" when nothing is.
  std::string missing{};
  /// For local_run_options; null where the journal of the run is in no etcd.
  std::shared_ptr<root_home> home{};
};

/// @returns why a job cannot be run.
using spec_check = std::function<result<void>(const spec::JobSpec&)>;

/// Opens the folder, changes the specification as asked (what changes the training is a new
/// revision of it, kept beside the ones before), and prepares the job. Nothing of that is written
/// before `change` is carried out. @returns bad_usage for a
/// folder that is no run's or in use, that kept nothing on disk, and for changes that a run does
/// not take, or one that is completed, whose stores are on other hosts, without any of those; else
/// as prepare_job() and, where there is something to train, check_for_hosts().
/// @param hosts on which it is to go on; nothing: on this one alone
/// @param asked the job file that led to this, which is then noted in the record
/// @param check can the caller run that job? Asked before anything is changed, and not of a job
/// that is trained to its end
/// @param wait of a run whose root may be elsewhere (R40); null: it waits for nobody
result<resumption> prepare_resumption(const std::filesystem::path& directory, const resume_options& options,
                                      const std::optional<hosts_plan>& hosts = {},
                                      const std::optional<spec::JobSpec>& asked = {},
                                      const spec_check& check = {}, root_wait* wait = nullptr);
/// The same of a folder that was just made of an archive (R45). Where that fails, the folder is
/// removed, to be made again.
result<resumption> prepare_restored(run_folder folder, const resume_options& options,
                                    const std::optional<hosts_plan>& hosts);

} // namespace dlrun::runtime
