/// What a run is trained with, in a file that nobody edits: the truth about a run, where spec.yaml
/// is a copy for people (docs/formats.md).
#pragma once

#include "proto/run_record.pb.h"
#include "runtime/prepared_job.hpp"

#include <filesystem>
#include <functional>
#include <optional>

namespace dlrun::runtime {

/// Of a job that is about to begin, as a run of its own. Hashes what of its data was not hashed
/// while it was decoded.
records::RunRecord make_record(const prepared_job& job);

/// The bytes of a record, as a file and an etcd have them.
std::string bytes_of(const records::RunRecord& record);
/// A record of such bytes; nothing when they are not what bytes_of() made.
std::optional<records::RunRecord> record_of(const std::string& bytes);

/// Whether a run's folder has one. @returns system when nobody can tell.
result<bool> has_record(const std::filesystem::path& run_dir);
/// The record in a run's folder; nothing where there is none, as in those of dlrun 0.1. Keys that
/// are newer than it have their defaults. @returns bad_usage, naming the file and the way out, when
/// it cannot be read or is not what was written; else as has_record().
result<std::optional<records::RunRecord>> read_record(const std::filesystem::path& run_dir);

/// The other hosts that the run had, with their folders, for people; "" when it never had any.
std::string tell_hosts(const records::RunRecord& record);

/// Whether a run that is to go on needs the list of its hosts: it had some, or a root with hosts
/// was killed.
bool needs_hosts(const std::filesystem::path& run_dir);

/// The command that goes on with the run, for people: on the hosts that it has, or had.
std::string resume_command(const std::filesystem::path& run_dir);

/// What a run that goes on is changed to. Nothing of the run is changed before its hosts are there.
struct run_change {
  std::function<void(records::RunRecord&)> of_record; ///< what counts
  std::function<result<void>()> of_files;             ///< afterwards: the copies for people
};

/// Replaces the record; the new one appears whole or not at all.
result<void> write_record(const std::filesystem::path& run_dir, const records::RunRecord& record);

/// Does the job train the same model on the same data as that of the record?
/// @returns bad_data naming what differs, the file, where in it, and the way out.
result<void> check_same_inputs(const records::RunRecord& record, const prepared_job& job);

} // namespace dlrun::runtime
