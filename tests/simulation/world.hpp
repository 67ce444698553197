/// The simulated cluster: virtual time, a bad network, the processes, and what outlives them.
#pragma once

#include "actors/protocol/planted_bug.hpp"
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
#include <stdexcept>
#include <vector>

namespace dlrun::simulation {

/// An invariant does not hold.
struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class agent_process;

class world {
public:
  world(const scenario& plan, protocol::planted_bug bug, std::ostream* trace);

  const scenario& plan() const { return plan_; }
  const job_shape& job() const { return plan_.job; }
  const oracle& truth() const { return truth_; }
  protocol::planted_bug bug() const { return bug_; }
  protocol::time_point now() const { return now_; }
  random_source& random() { return random_; }
  shard_disk& disk_of(ps_shard_id shard) { return disks_.at(shard.value); }

  /// Runs until the job is over. @throws violation.
  void run();
  /// The job is over, as the coordinator says.
  void finish(protocol::job_ended how) { ended_ = std::move(how); }
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

  void send(process& from, protocol::role_name to, message what);
  void after(protocol::duration delay, process* owner, std::function<void()> what);
  /// A message delay.
  protocol::duration delay();
  static bool reaches(const process& from, const process& to) { return from.group == to.group; }
  void start_calm();
  bool calm() const { return calm_; }

  /// Live processes, zombies too; of one role, in order of start.
  std::vector<process*> living(protocol::role_name role) const;
  std::vector<process*> living(protocol::role_kind kind) const;
  /// Newest start of a role that its agent believes in; null while there is none.
  process* newest(protocol::role_name role) const;

  /// A PS shard has published `version`, maybe not for the first time.
  void published(ps_shard_id shard, version_id version);
  /// Highest version that any PS shard ever published: all gradients below it have existed, and may still be
  /// on their way.
  std::uint64_t highest_published() const { return *std::max_element(published_.begin(), published_.end()); }
  std::uint64_t events = 0;
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
  std::vector<std::uint64_t> published_; ///< highest version of each shard ever
  bool calm_ = false;
  std::optional<protocol::job_ended> ended_;
};

} // namespace dlrun::simulation
