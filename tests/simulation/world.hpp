/// The simulated cluster: virtual time, a bad network, the processes, and what outlives them.
#pragma once

#include "actors/coordinator/coordinator_core.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "tests/simulation/cluster_hosts.hpp"
#include "tests/simulation/disk.hpp"
#include "tests/simulation/event_queue.hpp"
#include "tests/simulation/host_stores.hpp"
#include "tests/simulation/memory.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/violation.hpp"
#include "tests/simulation/what_happened.hpp"

#include <algorithm>
#include <fmt/ostream.h>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

namespace dlrun::simulation {

/// What a coordinator writes at the end.
struct job_report {
  protocol::job_ended ended;
  std::string digests;
  std::optional<protocol::evaluated> evaluation;
};

struct job_end {
  std::optional<protocol::job_ended> ended; ///< as the agent has heard
  std::optional<job_report> report;         ///< that a coordinator wrote; the newest counts
};

/// Since the beginning.
double milliseconds(protocol::time_point at);

class world {
public:
  world(const scenario& plan, protocol::planted_bug bug, std::ostream* trace);

  const scenario& plan() const { return plan_; }
  const job_shape& job() const { return plan_.job; }
  oracle& truth() { return truth_; }
  protocol::planted_bug bug() const { return bug_; }
  bool is_planted(protocol::planted_bug which) const { return protocol::is_planted(bug_, which); }
  protocol::time_point now() const { return now_; }
  random_source& random() { return random_; }
  cluster_hosts& hosts() { return hosts_; }
  host_stores& stores() { return stores_; }
  /// The store that was opened last, wherever it is.
  simulated_store& disk_of(ps_shard_id shard) { return stores_.newest(shard); }
  coordinator_journal& journal() { return journal_; }
  what_happened& happened() { return happened_; }

  /// Runs until the job is over. @throws violation.
  void run();
  job_end& end() { return end_; }

  template <class Process, class... Arguments>
  Process& start(Arguments&&... arguments) {
    auto owned = std::make_unique<Process>(*this, std::forward<Arguments>(arguments)...);
    auto& started = *owned;
    admit(std::move(owned));
    return started;
  }
  /// SIGKILL. What it had sent still arrives.
  void kill(process& which, std::string_view why);
  /// What the root has counted as lost: it may be alive, or begin yet, where it cannot be reached.
  void take_for_dead(const protocol::role_name& role, incarnation start);
  /// Told of every death.
  std::function<void(process& which, std::string_view why)> on_death;

  void send(process& from, protocol::role_name to, message what);
  void after(protocol::duration delay, process* owner, std::function<void()> what);
  /// A message delay.
  protocol::duration delay();
  void start_calm();
  bool calm() const { return calm_; }

  /// Live processes, zombies too; of one role, in order of start.
  std::vector<process*> living(protocol::role_name role) const;
  std::vector<process*> living(protocol::role_kind kind) const;
  /// Newest start of a role that its agent believes in; null while there is none.
  process* newest(protocol::role_name role) const;

  std::uint64_t events = 0;
  int hunts = 0; ///< kills at the hunted slot so far
  std::map<fault_kind, int> faults_done;

  template <class... Arguments>
  void say(const process* who, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (trace_ == nullptr) return;
    fmt::print(*trace_, "{:9.3f} {:<20} {}\n", milliseconds(now_), who == nullptr ? "world" : who->name(),
               fmt::format(text, std::forward<Arguments>(arguments)...));
  }

private:
  void admit(std::unique_ptr<process> owned);
  void send_connected(process& from, protocol::role_name to, message what);
  void deliver(process& from, protocol::role_name to, const std::shared_ptr<message>& what,
               protocol::time_point sent);

  scenario plan_;
  protocol::planted_bug bug_;
  oracle truth_;
  random_source random_;
  std::ostream* trace_;
  protocol::time_point now_;
  event_queue queue_;
  std::vector<std::unique_ptr<process>> processes_;
  std::map<protocol::role_name, std::vector<process*>> living_;
  cluster_hosts hosts_;
  host_stores stores_;
  std::set<std::pair<protocol::role_name, incarnation>> dead_; ///< to the root of several hosts
  std::map<std::pair<process*, protocol::role_kind>, protocol::time_point> last_arrival_;
  coordinator_journal journal_;
  what_happened happened_;
  bool calm_ = false;
  job_end end_;
};

} // namespace dlrun::simulation
