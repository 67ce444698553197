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

/// The end of a child, with what a person wants to read: "killed by signal 9 (KILL)".
struct child_exit {
  std::string detail;
  bool settled = false; ///< it had got somewhere before: its restart waits for no delay
  bool counts = true;   ///< false: a restart for it is none for supervisor_options::intensity (not in OTP)
  /// It had been up, though child_started() may never have said so: that word was lost. Its first
  /// start then did not fail.
  bool had_begun = false;
};

/// Start the child. Answer with child_started(), child_start_failed() or child_exited() of this
/// generation, within a deadline of your own: the supervisor waits for it.
struct start_child {
  std::string id;
  generation number = 0;
  std::string reason;
};

/// Stop that start of the child, which may not be up yet. Answer with child_exited() (or
/// child_start_failed()) when it is gone. May come again, as something stronger.
struct stop_child {
  /// `leave`: it alone goes, and may put its things in order first; the supervisor goes on.
  enum class kind : std::uint8_t { leave, terminate, kill };
  std::string id;
  generation number = 0;
  kind how = kind::terminate;
};

/// Last action of a supervisor that gave up; all its children are gone.
struct escalate {
  std::string reason;
};

/// Last action of a supervisor that was shut down; all its children are gone.
struct supervisor_stopped {};

using action = std::variant<start_child, stop_child, escalate, supervisor_stopped>;

/// To be carried out in this order.
using actions = std::vector<action>;

/// For logs and tests: "start a#2", "terminate a#2", "kill a#2", "escalate", "stopped".
std::string to_string(const action& what);

} // namespace dlrun::supervision
