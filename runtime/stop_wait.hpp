/// How a process that runs one actor waits for its end.
#pragma once

#include "base/unique_fd.hpp"

#include <caf/actor.hpp>
#include <dlrun/error.hpp>
#include <functional>

namespace dlrun::runtime {

/// SIGTERM and the signal of the agent (end_signal) ask the role to end in order; SIGINT is the
/// root's business (Ctrl-C on a terminal reaches everybody).
/// Threads that are made from here on inherit it. @param is_own the process is a user's own, with
/// no root on this host: SIGINT and SIGHUP mean the same as SIGTERM. @returns the descriptor that
/// such a signal can be read from.
base::unique_fd take_stop_signals(bool is_own = false);

/// Waits until the role has ended. The signal of the agent ends the role at once; any other calls
/// `leave`. @returns why it ended, if that was an error.
result<void> run_to_end(const caf::actor& role, const base::unique_fd& signals,
                        const std::function<void()>& leave);

} // namespace dlrun::runtime
