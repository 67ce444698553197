/// A root that keeps going without the command that started it (`train --detach`).
///
///   command ── fork ──> root, in a session of its own: no terminal, nothing to read
///      │                 │ checks, makes the run folder, waits for the hosts:
///      │   signals ────> │   it complains on the user's terminal, as without --detach
///      │ <── folder ──── │ the job has begun: output goes to logs/root.log from here on
///   says so, exits 0     │ trains
#pragma once

#include "cli/displayed_run.hpp"

#include <functional>

namespace dlrun::cli {

/// Where a detached root writes what it would show, in the run folder.
inline constexpr auto root_log = "logs/root.log";

/// Runs `root` in a second process of this program, which goes on when the job has begun; `root`
/// hands what it is given on to run_displayed(). Nobody may have made a thread before: the new
/// process has the calling one alone. Signals that end a run reach it until then, and it ends with
/// this process.
/// @param json what is said of the job on stdout is for a program
/// @returns in the command: 0 when the job has begun, and what the root returned when it has not.
/// In the new process: what `root` returns.
int run_detached(bool json, const std::function<int(const begun_hook&)>& root);

} // namespace dlrun::cli
