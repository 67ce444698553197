/// What marks the folder of a host that is not the root's as one of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace dlrun::job {

struct host_mark {
  std::uint64_t run = 0;  ///< its number
  std::string host{};     ///< name; "" where an earlier version wrote the mark
  std::string root{};     ///< name of the root's host
  std::string root_dir{}; ///< the run folder there
};

/// Its first line is the number of the run, which alone decides whose the folder is.
std::string to_text(const host_mark& mark);
/// @returns nothing for a folder without a whole first line of a mark.
std::optional<host_mark> read_host_mark(const std::filesystem::path& folder);

/// For people who take such a folder for that of the run; "" for any other folder.
std::string tell_host_folder(const std::filesystem::path& folder);

} // namespace dlrun::job
