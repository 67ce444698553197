/// How verbs report errors and warnings: one message on stderr, and the exit code of an error.
#pragma once

#include "cli/say.hpp"
#include "job/exit_code.hpp"

#include <dlrun/error.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace dlrun::cli {

/// Prints the message, behind all that went to stdout: where both streams are one file, it is the
/// last line.
inline void complain(std::string_view message) {
  flush(stdout);
  tell(log_level::error, message);
}

/// Why no path that begins there leads anywhere; "" where there is such a folder.
inline std::string tell_gone_folder() {
  std::error_code gone;
  static_cast<void>(std::filesystem::current_path(gone));
  return gone ? "; the current folder is gone: change into another one" : "";
}

/// The same. @returns the exit code of the error.
inline int complain(const error& what) {
  complain(what.message + tell_gone_folder());
  return static_cast<int>(job::exit_code_for(what.code));
}

/// Why a run did not complete, if it did not. @returns its exit code.
inline int complain_of(const report& ended) {
  if (ended.status != run_status::completed) complain(ended.reason);
  return static_cast<int>(job::exit_code_for(ended));
}

/// What does not stop anything, on stderr.
inline void warn(std::string_view message) { tell(log_level::warning, message); }
/// What is neither, and not what the verb is called for, likewise.
inline void note(std::string_view message) { tell(log_level::info, message); }

} // namespace dlrun::cli
