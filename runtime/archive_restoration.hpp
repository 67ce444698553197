/// A run folder made of an archive, so that a run goes on that was lost with everything else (R45).
#pragma once

#include "runtime/archive_folder.hpp"
#include "runtime/run_folder.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// An archive of which every byte is as it was written.
struct whole_archive {
  archive_place place;
  records::ArchiveRecord record;
  /// Why newer ones are not used, for people.
  std::vector<std::string> damaged{};
};

/// The newest in the folder that is whole; nothing where there is none at all. Reads all of it.
/// @returns storage_damaged, naming each, when all are damaged; bad_usage for one of another
/// format; system for one that cannot be read, which nothing older replaces.
result<std::optional<whole_archive>> find_whole_archive(const std::filesystem::path& folder);

/// Makes the folder of a run that goes on from the archive: a run of its own, with a number of its
/// own. Its record is written last; what is there before is a beginning, as of any run.
/// @returns the folder, locked for this process; bad_usage when there is something in `run_dir`
/// already; disk_full, system; storage_damaged.
result<run_folder> restore_run(const whole_archive& archive, const std::filesystem::path& run_dir);

/// What people are told of that.
std::string tell_restored(const whole_archive& archive);

} // namespace dlrun::runtime
