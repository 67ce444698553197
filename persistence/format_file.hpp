/// The file FORMAT of a folder: what the folder is and in which format, for people and programs.
#pragma once

#include "persistence/file_system.hpp"

#include <dlrun/error.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::persistence {

struct folder_format {
  /// One word, e.g. "dlrun-journal".
  std::string_view kind;
  unsigned number = 1;
  unsigned oldest = number; ///< that is read too
};

/// Is it there, and is it `expected`? @returns the number that it says; nullopt when there is no
/// such file; storage_damaged when it says something else, naming both.
result<std::optional<unsigned>> check_format(file_system& files, const std::string& directory,
                                             const folder_format& expected);

/// Its first line with `format`, then `more`. Durable when it returns; the old content or the new
/// one is there whatever happens.
result<void> write_format(file_system& files, const std::string& directory, const folder_format& format,
                          std::string_view more = "");

/// All that it says; nullopt when there is no such file.
result<std::optional<std::string>> read_format(file_system& files, const std::string& directory);
/// storage_damaged: it says `content`, which is not `expected`.
tl::unexpected<error> fail_format(const std::string& directory, std::string_view content,
                                  const folder_format& expected);

} // namespace dlrun::persistence
