/// What a disk lacks that is full.
#pragma once

#include <filesystem>
#include <string_view>
#include <sys/statvfs.h>

namespace dlrun::base {

/// To be said beside "No space left on device" of a write to `file`, which need not be there: a
/// disk may have as many files as it can have, and bytes enough. "" where it is not that.
inline std::string_view tell_no_inodes(const std::filesystem::path& file) {
  const auto folder = file.parent_path().empty() ? std::filesystem::path{"."} : file.parent_path();
  struct statvfs found {};
  const bool has_none = ::statvfs(folder.c_str(), &found) == 0 && found.f_files > 0 && found.f_favail == 0;
  return has_none ? " (it has no inodes left: remove files there, of any size)" : "";
}

} // namespace dlrun::base
