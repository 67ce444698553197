/// Going on with a run that was stopped or died.
#pragma once

#include "actors/agent/hosted_roles.hpp"
#include "runtime/prepared_job.hpp"
#include "runtime/run_folder.hpp"

#include <dlrun/training.hpp>
#include <functional>
#include <optional>

namespace dlrun::runtime {

struct resumption {
  run_folder folder;
  std::optional<prepared_job> job; ///< nothing when the run is completed: there is nothing left to train
  incarnation coordinator;         ///< what its next start is called
  /// Of a run that had other hosts: what is lost, and the way out, if it goes on without them; ""
  /// when nothing is.
  std::string left_behind;
  bool is_same_job = false; ///< its specification is what it was
  /// R38: it is trained to its end, and there is a job again: these stores are on other hosts, or
  /// those have not heard of the end.
  std::optional<agent::last_stores> gathers{};
  /// Then: what is missing, and the way out; "" when nothing is.
  std::string missing{};
};

/// Where a run is to go on.
struct resumption_place {
  bool has_hosts = false; ///< on several hosts
  /// Can the job run there? Asked before anything is changed; not of one that is trained to its
  /// end.
  std::function<result<void>(const spec::JobSpec&)> fits = [](const auto&) { return result<void>{}; };
};

/// Opens the folder, changes the specification as asked (what changes the training is a new
/// revision of it, kept beside the ones before), and prepares the job. @returns bad_usage for a
/// folder that is no run's or in use, that kept nothing on disk, and for changes that a run does
/// not take, or one that is completed, whose stores are on other hosts, without any of those; else
/// as prepare_job(), and what `place` says of a job that does not fit.
/// Where it is refused nothing in the folder is changed.
/// @param asked the job file that led to this, which is then noted in the record
result<resumption> prepare_resumption(const std::filesystem::path& directory, const resume_options& options,
                                      const resumption_place& place = {},
                                      const std::optional<spec::JobSpec>& asked = {});

} // namespace dlrun::runtime
