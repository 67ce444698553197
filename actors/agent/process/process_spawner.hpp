/// process_spawner: starts child processes and sees them end.
#pragma once

#include "actors/agent/process/child_command.hpp"
#include "actors/agent/process/exit_report.hpp"

#include <cstddef>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <functional>
#include <memory>
#include <sys/types.h>

namespace dlrun::agent {

/// One start of a child process. Never reused by its spawner.
using child_id = strong_id<struct child_tag, std::uint64_t>;

/// One long-lived thread that spawns (posix_spawn: never fork, which hangs a child of a process
/// with thread pools) and watches by pidfd, without a SIGCHLD handler and without a chance of
/// hitting a reused pid. The thread must be one and the same because a child's parent-death signal
/// is tied to the thread that spawned it.
///
/// Thread-safe; calls never block, and take effect in the order they were made. Callbacks run on
/// the spawner's thread, must not block and may call spawn() and signal(). A process has at most
/// one spawner that handles given children; nothing else in it may wait for them.
class process_spawner {
public:
  /// Called once for each spawn() that returned an id: the pid, or why the program could not be
  /// started (on_exit is not called then).
  using started_callback = std::function<void(child_id, result<pid_t>)>;
  /// Called once for each child that was started, after started_callback, within milliseconds of
  /// its end.
  using exit_callback = std::function<void(child_id, const exit_report&)>;

  /// If SIGCHLD is ignored (some parents leave it so) its default is restored, since the kernel
  /// would otherwise throw exit statuses away.
  static result<std::unique_ptr<process_spawner>> create();

  /// Kills (SIGKILL) and reaps the children that are left, with their callbacks, then ends the
  /// thread. Not to be called from a callback.
  ~process_spawner();

  /// @returns system when a descriptor named in `spec` cannot be duplicated, limit_exceeded when
  /// 1024 calls wait; no callback is called then.
  result<child_id> spawn(child_command spec, started_callback on_started, exit_callback on_exit);

  /// Sends a signal, e.g. SIGTERM or SIGKILL, to that very child; nothing happens if it has ended
  /// or never started.
  /// @returns limit_exceeded when 1024 calls wait, bad_usage for a number that is no signal.
  result<void> signal(child_id child, int signal_number);

private:
  class loop;
  explicit process_spawner(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

/// The program that is running, for child_command.program: this very build, also when its file was
/// replaced or removed since. @returns system where /proc is not mounted.
result<executable> own_executable();

} // namespace dlrun::agent
