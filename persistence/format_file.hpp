/// The file FORMAT of a folder: what the folder is and in which format, for people and programs.
#pragma once

#include "persistence/file_system.hpp"

#include <dlrun/error.hpp>
#include <string>
#include <string_view>

namespace dlrun::persistence {

struct folder_format {
  /// One word, e.g. "dlrun-journal".
  std::string_view kind;
  unsigned number = 1;
};

/// Is it there, and is it `expected`? @returns false when there is no such file; storage_damaged
/// when it says something else, naming both.
result<bool> check_format(file_system& files, const std::string& directory, const folder_format& expected);

/// Durable when it returns.
result<void> write_format(file_system& files, const std::string& directory, const folder_format& format);

} // namespace dlrun::persistence
