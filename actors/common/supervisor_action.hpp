/// What a supervisor is told and what it orders.
#pragma once

#include "actors/common/supervisor_spec.hpp"

#include <string>
#include <variant>
#include <vector>

namespace dlrun::supervision {

/// Number of a start of a child: 1, 2, ... Events carry it, so that late ones of an older start are
/// known as such.
using generation = std::uint64_t;

/// Why a child ended. `shutdown` is an end that was asked for; like `normal` it is not a failure.
enum class exit_reason : std::uint8_t { normal, shutdown, abnormal };

/// The end of a child, with what a person wants to read: "killed by signal 9 (KILL)".
struct child_exit {
  exit_reason reason = exit_reason::abnormal;
  std::string detail;
  bool settled = false; ///< it had got somewhere before: its restart waits for no delay
  bool counts = true;   ///< false: a restart for it is none for supervisor_options::intensity (not in OTP)
};

/// Start the child. Answer with child_started(), child_start_failed() or child_exited() of this
/// generation, within a deadline of your own: the supervisor waits for it.
struct start_child {
  std::string id;
  generation number = 0;
  std::string reason;
};

/// Stop that start of the child, which may not be up yet. Answer with child_exited() (or
/// child_start_failed()) when it is gone. May come a second time, as a kill.
struct stop_child {
  enum class kind : std::uint8_t { terminate, kill };
  std::string id;
  generation number = 0;
  kind how = kind::terminate;
  /// When a kill follows; time_point::max() = never.
  time_point deadline = time_point::max();
  std::string reason;
};

/// All children of the beginning have been up: for a parent, this supervisor has started.
struct supervisor_started {};

/// Last action of a supervisor that gave up; all its children are gone. To its parent this is an
/// abnormal exit.
struct escalate {
  std::string reason;
};

/// Last action of a supervisor that was shut down, from outside or by automatic shutdown; all its
/// children are gone. To its parent this is an exit with reason shutdown.
struct supervisor_stopped {
  std::string reason;
};

using action = std::variant<start_child, stop_child, supervisor_started, escalate, supervisor_stopped>;

/// To be carried out in this order.
using actions = std::vector<action>;

/// For logs and tests: "start a#2", "terminate a#2", "kill a#2", "started", "escalate", "stopped".
std::string to_string(const action& what);
/// The reason that goes with it; empty for supervisor_started.
std::string reason_of(const action& what);

} // namespace dlrun::supervision
