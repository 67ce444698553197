/// What the root of a run shows: written by the agent, read by the progress display and by
/// `dlrun status`.
#pragma once

#include "actors/agent/gpu_choice.hpp"
#include "actors/agent/managed_roles.hpp"
#include "actors/agent/stall_board.hpp"
#include "actors/protocol/end_messages.hpp"
#include "base/own_machine.hpp"
#include "engine/metrics.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace dlrun::agent {

/// What training came to so far.
struct training_progress {
  std::uint64_t step = 0;  ///< steps that are in this
  double step_loss = 0;    ///< mean over the records of the newest step
  std::uint64_t epoch = 0; ///< from 0; the rest is of its records so far
  double loss = 0;         ///< mean
  named_values metrics{};
};
training_progress progress_of(const protocol::training_metrics& sums, const engine::metric_set& metrics,
                              std::uint64_t step);

/// A host of a job, for people.
struct host_view {
  std::string name;
  std::string state;           ///< of host_state, or of drain_stage when it is drained
  std::string waits_for{};     ///< while it is drained: what is not elsewhere yet, and why
  bool needs_a_host = false;   ///< that gets no further before another host is there
  bool without_copies = false; ///< while it is drained: no other host is in use for copies
  std::string address{};       ///< number, of the agent that came last; "": none has
  /// What would be lost with it and its disk now, for people; "": nothing that was committed.
  std::string loses{};
  base::memory_use memory{}; ///< with a limit of 0: it has not told
};

/// What of a run is archived.
struct archive_view {
  std::uint64_t step = 0;      ///< of the newest archive
  std::int64_t made_at_us = 0; ///< since 1970; 0: there is none
  std::string failure{};       ///< why the next one is not made, for people; "" where nothing failed

  bool operator==(const archive_view&) const = default;
};
/// How old the newest one is. 0 where there is none.
double age_s(const archive_view& archive);

/// State of a run at one moment.
struct run_snapshot {
  std::string job;
  std::string status = "running"; ///< waiting (for hosts), running, stopping, or the outcome
  std::string waits_for{};        ///< of one that waits, for people: "hosts: beta, gamma"
  std::uint64_t step = 0;
  std::uint64_t durable_step = 0;
  std::uint64_t steps = 0;
  std::optional<training_progress> train; ///< nothing before the first step
  std::optional<stall_view> stall;        ///< nothing while steps are made
  worker_counts workers;
  std::vector<role_view> roles;
  std::vector<host_view> hosts{}; ///< of a job that may have several
  std::vector<avoided_gpu> avoided_gpus{};
  std::vector<std::string> held_up_by{}; ///< what holds hosts up, for people
  /// Addresses from which hosts, by name, wanted to join just now and were not let in.
  std::map<std::string, std::string> turned_away{};
  std::optional<archive_view> archive{}; ///< of a run that has an archive
  std::uint64_t started_us = 0;          ///< when the root began, by its host's CLOCK_MONOTONIC
};

/// One object: job, status, waits_for (while it waits for hosts), started_us, step, durable_step,
/// steps, train (step_loss, epoch, loss, each metric; null before the first step), stall (role,
/// index, host, phase, slot, seconds, text; null while steps are made), workers (wanted, present,
/// leaving), roles (role, index, pid, incarnation, state; of a worker slots and slots_per_second
/// too; of a PS shard that has one, store: host, identity, versions that it can restore, floor; of
/// a keeper whose PS shard has heard of it, copy: behind, and once it was measured bytes_per_step,
/// bytes_per_second, step_ms, busy, waited, slow); of a job that may have several hosts, hosts
/// (name, state; of one that is drained waits_for and needs_a_host too, and without_copies where
/// that is true; loses where something is lost with it); of a run that has an archive, archive
/// (step and age_s, null before the first one; failure where there is one); avoided_gpus (gpu,
/// host, reason) and held_up_by (texts), where there are some.
std::string to_json(const run_snapshot& snapshot);
/// That of a PS shard: host, identity, versions ([first, last] of each run), floor.
nlohmann::ordered_json store_to_json(const protocol::store_standing& store,
                                     const protocol::version_set& restorable);
/// How far the run is, as another process read it: job, status, started_us, steps and train, no
/// workers and roles. What is null is NaN. @returns nothing for what to_json() did not write.
std::optional<run_snapshot> progress_from_json(std::string_view text);

/// Thread-safe.
class run_board {
public:
  void show(run_snapshot snapshot);
  void add_event(protocol::job_event event);
  void finish(protocol::job_ended ended);
  /// Of each snapshot from now on.
  void set_archive(archive_view archive);

  run_snapshot snapshot() const;
  /// Waits until the run has finished or `patience` is over; then the events since the last call.
  /// @returns how it ended, once it has and all events were taken.
  std::optional<protocol::job_ended> wait(std::chrono::milliseconds patience,
                                          std::vector<protocol::job_event>& events);

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  run_snapshot snapshot_;
  std::optional<archive_view> archive_;
  std::vector<protocol::job_event> events_;
  std::optional<protocol::job_ended> ended_;
};

} // namespace dlrun::agent
