/// Errors as values: one enum of codes, a message for the user, result<T>.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace dlrun {

/// Every way in which a call of dlrun can fail. The code is for programs. The message beside it is
/// for people: it names the thing, the place and the way out.
enum class error_code : std::uint8_t {
  /// The caller's arguments or the command line make no sense. Exit code 2.
  bad_usage = 1,
  /// The job specification is wrong: unknown key, wrong type, impossible value, shapes that do not
  /// fit. Exit code 2.
  bad_spec,
  /// A file of the data set is missing, truncated, corrupt or not of the named format. Exit code 2.
  bad_data,
  /// The operating system refused something: open, map, spawn, connect. The message carries errno's
  /// text.
  system,
  /// A deadline passed before an answer came.
  timed_out,
  /// The sender's timeline, incarnation or token is not the current one; nothing was applied.
  fenced,
  /// A peer sent something that no correct peer sends. Nothing of it was used.
  protocol,
  /// A role failed more often than its restart budget allows.
  restart_budget_exceeded,
  /// A role failed in a way that this version cannot recover from.
  role_lost,
  /// The job was asked to stop before all data was trained.
  interrupted,
  /// The training diverged: a loss, a gradient or an updated parameter is NaN or infinite.
  diverged,
  /// A limit (memory, buffers, file size, the job's quota of the disk) would have been exceeded.
  limit_exceeded,
  /// Stored bytes are not what was written, or another version of dlrun wrote them. None of them
  /// were used.
  storage_damaged,
  /// The disk is full. The caller may try again when there is space.
  disk_full,
  /// Another live process holds the thing. The caller may try again when that process is gone.
  in_use,
};

/// Name of the code as documented, e.g. "bad_spec".
constexpr std::string_view to_string(error_code code) {
  switch (code) {
  case error_code::bad_usage: return "bad_usage";
  case error_code::bad_spec: return "bad_spec";
  case error_code::bad_data: return "bad_data";
  case error_code::system: return "system";
  case error_code::timed_out: return "timed_out";
  case error_code::fenced: return "fenced";
  case error_code::protocol: return "protocol";
  case error_code::restart_budget_exceeded: return "restart_budget_exceeded";
  case error_code::role_lost: return "role_lost";
  case error_code::interrupted: return "interrupted";
  case error_code::diverged: return "diverged";
  case error_code::limit_exceeded: return "limit_exceeded";
  case error_code::storage_damaged: return "storage_damaged";
  case error_code::disk_full: return "disk_full";
  case error_code::in_use: return "in_use";
  }
  return "unknown";
}

/// What went wrong.
struct error {
  error_code code = error_code::system; ///< for programs
  std::string message;                  ///< for people: names the thing, the place and the way out
};

/// A value, or the error that takes its place.
template <class T>
using result = tl::expected<T, error>;

/// Shorthand for the failing side of a result: `return fail(error_code::bad_spec, "...")`.
inline tl::unexpected<error> fail(error_code code, std::string message) {
  return tl::unexpected<error>(error{code, std::move(message)});
}

} // namespace dlrun
