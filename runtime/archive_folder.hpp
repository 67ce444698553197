/// The folder of archives: each appears whole or not at all (docs/formats.md).
#pragma once

#include "base/sha256.hpp"
#include "base/unique_fd.hpp"
#include "proto/archive_record.pb.h"
#include "runtime/archive_content.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::runtime {

/// One that is whole, as far as its name says.
struct archive_place {
  std::uint64_t number = 0; ///< of two, the newer one has the higher
  std::uint64_t run = 0;    ///< number of the run
  std::filesystem::path path;
};
/// Newest first; empty where the folder is not there. @returns system when it cannot be read.
result<std::vector<archive_place>> list_archives(const std::filesystem::path& folder);

/// The record of an archive whose files have the sizes that they had. @returns storage_damaged for
/// what is not what was written, bad_usage for another format, system for what cannot be read;
/// naming the file.
result<records::ArchiveRecord> read_archive_record(const std::filesystem::path& archive);
/// Reads all of its snapshots. @returns storage_damaged, naming the first file that is not what was
/// written; system, naming the first one that cannot be read.
result<void> check_archived_snapshots(const std::filesystem::path& archive,
                                      const records::ArchiveRecord& record);
/// "ps_shard-1.40-2.snap", in an archive.
std::string archived_file_name(const records::ArchivedSnapshot& snapshot);

/// Whose archives a run goes on from, or replaces: its own, and those of the runs that it goes on
/// from. @returns bad_usage when the newest one in the folder is of another run: that run keeps it.
result<void> check_archives_are_of(const std::filesystem::path& folder, const records::RunRecord& record);

/// Of this run, and of those that it goes on from: what a root that was killed left of an archive.
/// @returns system when the folder cannot be read.
result<void> remove_unfinished_archives(const std::filesystem::path& folder,
                                        const records::RunRecord& record);

/// The newest step that the run was at, for people; 0: nobody knows.
std::uint64_t step_reached(const std::filesystem::path& folder, std::uint64_t run);
/// Replaces that; not durable.
result<void> note_step_reached(const std::filesystem::path& folder, std::uint64_t run, std::uint64_t step);

/// An archive in the making, under a name of its own. Blocks on the disk. Errors as write(2):
/// disk_full, system.
class archive_writer {
public:
  /// Removes what is unfinished first. Errors as check_archives_are_of().
  static result<archive_writer> begin(const std::filesystem::path& folder, const records::RunRecord& record);
  archive_writer(archive_writer&&) noexcept = default;
  archive_writer& operator=(archive_writer&&) = delete;
  /// Removes it, if it is not finished.
  ~archive_writer();

  /// The bytes that follow are of this snapshot.
  result<void> begin_snapshot(ps_shard_id shard, const snapshot_name& name);
  result<void> write(std::string_view bytes);
  /// Makes it durable and reads it again. @returns storage_damaged when it is no whole snapshot.
  result<void> end_snapshot();

  /// All snapshots are there: it gets its name. @param record all but the snapshots
  result<void> finish(records::ArchiveRecord record);
  /// Then those of the run, and of those before it, are removed but for the newest two. @returns
  /// system for the first one that cannot be, when the others are.
  result<void> remove_older() const;
  std::uint64_t bytes() const { return bytes_; }

private:
  archive_writer(std::filesystem::path folder, records::RunRecord record, std::uint64_t number);
  std::filesystem::path part() const { return place_.string() + ".part"; }

  std::filesystem::path folder_;
  records::RunRecord of_; ///< only whose it is
  std::filesystem::path place_;
  std::vector<records::ArchivedSnapshot> snapshots_;
  base::unique_fd file_;
  std::optional<base::sha256> digest_;
  std::uint64_t bytes_ = 0;
};

} // namespace dlrun::runtime
