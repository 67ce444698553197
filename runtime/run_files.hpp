/// The files that dlrun keeps in a run folder, by their names.
#pragma once

#include <dlrun/error.hpp>
#include <filesystem>

namespace dlrun::runtime {

/// Of the root that used the folder last, where roots keep a register (root_home).
inline constexpr auto root_number_file = "root.number";

/// Whether each of them that is there, logs included, is a regular file or leads to one. Whoever
/// opened another one might wait for ever. @returns bad_usage naming the first that is none, and
/// the way out.
result<void> check_run_files(const std::filesystem::path& folder);

/// Whether this process may read it, where it is there. @returns bad_usage naming it.
result<void> check_readable(const std::filesystem::path& file);

/// Whether a process that lives holds the lock of this file alone, as a root and an agent do. A
/// file that cannot be looked at is nobody's.
bool is_locked(const std::filesystem::path& file);

/// Where `file` is below `folder`, whatever links lead to either; "" where it is not.
std::filesystem::path place_within(const std::filesystem::path& folder, const std::filesystem::path& file);

/// Whether dlrun itself keeps `file` in the run folder, or in a folder below that is its own:
/// specifications, record, events, logs, stores. What a user has put there is not.
bool is_part_of_run(const std::filesystem::path& folder, const std::filesystem::path& file);

} // namespace dlrun::runtime
