/// The simulated cluster: virtual time, a bad network, the processes, and what outlives them.
#pragma once

#include "actors/coordinator/coordinator_core.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "tests/simulation/disk.hpp"
#include "tests/simulation/event_queue.hpp"
#include "tests/simulation/memory.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/scenario.hpp"

#include <algorithm>
#include <fmt/ostream.h>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <vector>

namespace dlrun::simulation {

/// An invariant does not hold.
struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a coordinator writes at the end.
struct job_report {
  protocol::job_ended ended;
  std::string digests;
  std::optional<protocol::evaluated> evaluation;
};

/// What the oracle must know of the run so far.
struct what_happened {
  bool ps_shard_lost = false;
  bool worker_lost = false; ///< or silent for so long that it may count as lost
  bool lossy_power_cut = false;
  bool disk_lost = false;
  std::set<ps_shard_id> damaged_after_end; ///< whose newest snapshot was whole when the job was over
  bool journal_lost = false;
  bool went_back_on_purpose = false;
  int rewinds = 0;
  int rewinds_for_lost_gradients = 0;
  std::uint64_t steps_redone = 0;
  std::uint64_t floor = 0;  ///< highest that was ordered, and not undercut since
  std::uint64_t widest = 0; ///< most versions that two shards of a timeline were apart
};

class world {
public:
  world(const scenario& plan, protocol::planted_bug bug, std::ostream* trace);

  const scenario& plan() const { return plan_; }
  const job_shape& job() const { return plan_.job; }
  /// What `shard` must hold at `version` after this history.
  value expected(const protocol::history& history, version_id version, ps_shard_id shard) {
    return truth_.parameters(course_of(history, plan_.job.steps), version, shard);
  }
  oracle& truth() { return truth_; }
  protocol::planted_bug bug() const { return bug_; }
  bool is_planted(protocol::planted_bug which) const { return protocol::is_planted(bug_, which); }
  protocol::time_point now() const { return now_; }
  random_source& random() { return random_; }
  shard_disk& disk_of(ps_shard_id shard) { return disks_.at(shard.value); }
  coordinator_journal& journal() { return journal_; }
  bool is_durable() const { return plan_.durability != protocol::durability::off; }
  what_happened& happened() { return happened_; }

  /// Runs until the job is over. @throws violation.
  void run();
  /// The job is over, as the agent has heard.
  void finish(protocol::job_ended how) { ended_ = std::move(how); }
  /// The report that a coordinator wrote; the newest counts.
  void report(const protocol::job_ended& ended, const coordinator::coordinator_core& by);
  const std::optional<job_report>& report() const { return report_; }
  const std::optional<protocol::job_ended>& ended() const { return ended_; }

  template <class Process, class... Arguments>
  Process& start(Arguments&&... arguments) {
    auto owned = std::make_unique<Process>(*this, std::forward<Arguments>(arguments)...);
    auto& started = *owned;
    admit(std::move(owned));
    return started;
  }
  /// SIGKILL. What it had sent still arrives.
  void kill(process& which, std::string_view why);
  /// SIGSTOP and SIGCONT.
  void freeze(process& which);
  void thaw(process& which);
  /// Told of every death.
  std::function<void(process& which, std::string_view why)> on_death;

  /// Told of every floor that is ordered; a wish to go back below it comes at the worst moment.
  std::function<void(version_id floor)> on_floor;

  // what the oracle must know
  void note_floor(const protocol::floor& order);
  void note_rewind(const data_dispatcher::timeline_started& start);
  /// R15: nobody goes to a timeline that is not in the journal.
  void check_begun(const ps_shard::perform_rewind& order, const process& by) const;

  void send(process& from, protocol::role_name to, message what);
  void after(protocol::duration delay, process* owner, std::function<void()> what);
  /// A message delay.
  protocol::duration delay();
  protocol::duration journal_delay();
  static bool reaches(const process& from, const process& to) { return from.group == to.group; }
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
    fmt::print(*trace_, "{:9.3f} {:<20} {}\n", milliseconds_now(), who == nullptr ? "world" : who->name(),
               fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  template <class... Arguments>
  [[noreturn]] void broken(std::string_view rule, fmt::format_string<Arguments...> text,
                           Arguments&&... arguments) const {
    throw violation(fmt::format("{}: {}", rule, fmt::format(text, std::forward<Arguments>(arguments)...)));
  }

private:
  void admit(std::unique_ptr<process> owned);
  void deliver(process& from, protocol::role_name to, const std::shared_ptr<message>& what);
  double milliseconds_now() const;

  scenario plan_;
  protocol::planted_bug bug_;
  oracle truth_;
  random_source random_;
  std::ostream* trace_;
  protocol::time_point now_;
  event_queue queue_;
  std::vector<std::unique_ptr<process>> processes_;
  std::map<protocol::role_name, std::vector<process*>> living_;
  std::vector<shard_disk> disks_;
  coordinator_journal journal_;
  what_happened happened_;
  bool calm_ = false;
  std::optional<job_report> report_;
  std::optional<protocol::job_ended> ended_;
};

} // namespace dlrun::simulation
