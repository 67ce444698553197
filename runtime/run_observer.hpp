/// The interface through which a run reports its progress.
#pragma once

#include "actors/agent/host_admission.hpp"
#include "actors/agent/run_board.hpp"
#include "actors/protocol/time.hpp"

#include <dlrun/report.hpp>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// That a run is to end.
struct stop_wish {
  std::string reason;
  /// Set where nobody waits for the roles: ends this process. Other hosts are told first, for a
  /// second or two at most, so that what runs there ends as well and waits for no root.
  std::function<void()> end_now{};
  /// Then: other hosts are told nothing, since another root takes over what runs there (R35).
  bool leaves_hosts = false;
  /// The stores of PS shards are wanted in the run folder, since other hosts may go for good (R42).
  bool brings_stores = false;
};

/// Receives the progress of a run. Only the thread of run_locally() calls it, where nothing else is
/// said.
class run_observer {
public:
  virtual ~run_observer() = default;
  /// Called once, before all other calls but hosts_may_join(), hosts_come(), waits() and
  /// asked_to_stop(): all checks have passed, the hosts are there, `dlrun status` is answered, and
  /// the roles are started next.
  /// @returns why the run must not begin after all.
  virtual result<void> begun() { return {}; }
  /// Before that, where the run has other hosts that may join by themselves: from now on they do.
  /// @returns why the run must not begin.
  virtual result<void> hosts_may_join() { return {}; }
  /// Asked on any thread, from then on, before a host that has proved itself is let in. @returns
  /// as agent::join_check.
  virtual result<void> may_join(const agent::arriving_host& /*who*/) const { return {}; }
  /// Before begun(): what the run waits for, at each change.
  virtual void waits(const std::string&) {}
  /// Before begun(): who has come so far; called ten times a second.
  virtual void hosts_come(const agent::run_snapshot&) {}
  /// Asked by `dlrun status`, on any thread: what holds its hosts up, for people.
  virtual std::vector<std::string> held_up_by() const { return {}; }
  /// How far the run has come; called ten times a second.
  virtual void update(const agent::run_snapshot& now, protocol::time_point at) = 0;
  /// A failure or recovery.
  virtual void event(const protocol::job_event& event) = 0;
  /// Asked after each update, and while the hosts of the run are waited for. @returns nothing to go
  /// on.
  virtual std::optional<stop_wish> asked_to_stop() { return std::nullopt; }
  /// R38, of a run with other hosts, on a thread of its own: the run folder has the whole model of
  /// a job that is complete, no role runs, and no host has heard of the end. May take its time,
  /// until `stop` is requested. @returns "": the hosts may go; else why they are to wait for
  /// another root, which is then the error of the run
  virtual std::string deliver(const std::stop_token& /*stop*/) { return ""; }
  /// Another process has become the root of the run (R39, R40). One that returns lets this one end
  /// the run as failed.
  virtual void superseded(const std::string& /*why*/) {}
  /// The end. `report_path`: where the report is; "" if it could not be written.
  virtual void summary(const dlrun::report& report, const std::string& report_path) = 0;
};

} // namespace dlrun::runtime
