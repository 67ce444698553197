/// Decides incarnations, membership and the life of the job (rules R4, R15, R19).
///
///   role_started, role_exited ──> coordinator_core ──> fence_supply: fences for the starts to come
///   join ──> start_claims: believed? ─┘ │ │ └────────> start_book: who is who, the directory
///   scale_job ────────────────────────┘ │ └──────────> crash_book: which slots end their workers
///   training_finished, digests ──> job_ending          recovery_book: what losses cost
///                                                      workforce: how many workers are wanted
#pragma once

#include "actors/coordinator/coordinator_actions.hpp"
#include "actors/coordinator/coordinator_core_config.hpp"
#include "actors/coordinator/crash_book.hpp"
#include "actors/coordinator/fence_supply.hpp"
#include "actors/coordinator/job_ending.hpp"
#include "actors/coordinator/recovery_book.hpp"
#include "actors/coordinator/start_book.hpp"
#include "actors/coordinator/workforce.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace dlrun::coordinator {

/// Pure: decides which starts of roles take part: which may begin, which have joined, which are
/// over. Its parts decide the rest.
class coordinator_core {
public:
  /// `journaled`: what the journal holds; `config.self` is above every incarnation of a coordinator
  /// in it. The first fences are issued when the agent is there.
  explicit coordinator_core(coordinator_core_config config, const journaled_job& journaled = {});

  /// The agent is there: grants fences for every role. The agent then reports everything that runs,
  /// with on_role_started(), and what ended while there was no coordinator.
  /// @param agent random number of its process, if it may be another agent than before (R35)
  coordinator_actions on_agent(std::optional<std::uint64_t> agent = std::nullopt);
  coordinator_actions on_role_started(const protocol::role_started& started);
  /// A lost PS shard that keeps nothing on disk cannot be recovered: the job fails with the reason.
  /// A lost worker is replaced by the agent; when its restart budget is exceeded the agent says so
  /// with stop_job.
  coordinator_actions on_role_exited(const protocol::role_exited& exited, protocol::time_point now);
  /// @returns the answer, if there is one yet: a start that an earlier agent made is let in once
  /// the present agent has said that it takes the start over (R35).
  coordinator_actions on_join(const protocol::join& join);
  /// The process of this coordinator can be reached at `at`, and runs a new start of the
  /// dispatcher: gives that a larger incarnation than any before (dispatcher_incarnation()) and
  /// announces both, since neither joins.
  coordinator_actions on_dispatcher_started(const protocol::endpoint& at);
  /// 0 before the first.
  dlrun::incarnation dispatcher_incarnation() const;
  /// The fences given with this id, and all before, are in the journal.
  coordinator_actions on_fences_journaled(std::uint64_t id);
  /// The agent asks for another number of workers. Without a journal it holds from now on.
  coordinator_actions on_scale(const protocol::scale_job& order);
  coordinator_actions on_workers_journaled(const journaled_workers& written);
  coordinator_actions on_tick(protocol::time_point now);

  protocol::directory directory() const;
  const start_book& starts() const { return starts_; }
  /// The caller tells it what became of losses; it decides nothing.
  recovery_book& recoveries() { return recoveries_; }
  const recovery_book& recoveries() const { return recoveries_; }
  /// The caller tells it how training ends.
  job_ending& ending() { return ending_; }
  const job_ending& ending() const { return ending_; }

private:
  void know(const protocol::role_name& role);
  void man(coordinator_actions& out);
  void restore(const journaled_job& journaled);
  coordinator_actions on_older_end(const protocol::role_exited& exited, protocol::time_point now);
  bool count_crash(const protocol::role_exited& exited, coordinator_actions& out);
  bool begin_start(const protocol::role_name& role, const protocol::fence& self, coordinator_actions& out);
  void end_start(const protocol::role_name& role, std::string_view cause, coordinator_actions& out);
  void end_over(const protocol::role_name& role, coordinator_actions& out) const;
  void notice_older_journal(const protocol::role_name& role, const protocol::fence& self,
                            coordinator_actions& out);
  void announce(coordinator_actions& out) const;

  coordinator_core_config config_;
  fence_supply fences_;
  start_book starts_;
  workforce workforce_;
  crash_book crashes_;
  recovery_book recoveries_;
  job_ending ending_;
  std::uint64_t dispatchers_started_ = 0;
  std::optional<protocol::time_point> repeated_;
};

} // namespace dlrun::coordinator
