/// Files that the root writes before anything is started, on a disk that may be full.
#pragma once

#include "runtime/run_observer.hpp"

#include <dlrun/error.hpp>
#include <functional>

namespace dlrun::runtime {

/// Calls a function that writes a file, perhaps more than once. @returns what it returned last.
using file_writing = std::function<result<void>(const std::function<result<void>()>& write)>;

/// For a run that begins: without room it is refused, so that nothing is left of it.
file_writing writing_once();

/// For a run that goes on: calls `write` again while it says disk_full, and tells `observer` what
/// is waited for. To be called on the thread of run_locally(). @returns interrupted when `observer`
/// asks to stop, or `is_stopped` says so, while there is no room.
/// @param observer outlives what is returned
file_writing writing_with_patience(run_observer& observer, std::function<bool()> is_stopped);

} // namespace dlrun::runtime
