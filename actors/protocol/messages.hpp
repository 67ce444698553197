/// Every message between roles, as plain structs: the pure cores take and give these, the actors
/// carry them (handles.hpp).
///
/// Rules for a message: no floating point (CAF corrupts it: send bit patterns), no tensors (they go
/// over the tensor channel), below 64 KiB, idempotent, and with the fence or timeline by which a
/// stale one is told.
#pragma once

#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/reduction_tree.hpp"
#include "actors/protocol/rewind_messages.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/stall_messages.hpp"
#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/timeline.hpp"

#include <dlrun/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::protocol {

// ---- where a role can be reached

/// Control and tensor address of one started role.
struct endpoint {
  std::string control;        ///< of its process (actors/link/process_link.hpp); empty = all roles share it
  std::uint64_t process = 0;  ///< random number of the process, so that a role knows who shares its process
  std::string tensor_address; ///< of its process's segment_offers; empty = offers none

  bool operator==(const endpoint&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, endpoint& x) {
    return f(x.control, x.process, x.tensor_address);
  }
};

/// A segment that a role offers on its tensor address.
struct tensor_location {
  std::string address;
  std::uint64_t segment = 0;
  std::uint64_t bytes = 0;

  bool operator==(const tensor_location&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, tensor_location& x) {
    return f(x.address, x.segment, x.bytes);
  }
};

// ---- starting and finding each other

/// Role -> agent and role -> coordinator, once after its start and again until answered.
struct join {
  role_name role;
  fence self;
  std::int32_t pid = 0;
  endpoint at;
  std::string fingerprint; ///< build, libraries, processor, threads: hosts that differ would change bits (I2)
  std::string device{};    ///< what a worker computes on, "cpu" or a GPU and its libraries; of others empty
  opened_store opened{};   ///< of a PS shard

  template <class Inspector>
  friend auto inspect(Inspector& f, join& x) {
    return f(x.role, x.self, x.pid, x.at, x.fingerprint, x.device, x.opened);
  }
};

/// Answer to `join`. A refused role ends itself.
struct join_reply {
  bool accepted = false;
  std::string reason; ///< why it was refused
  /// Of an agent: the random number of its process, which another root has when it takes over the
  /// roles that an earlier one left (R35).
  std::uint64_t agent = 0;
  bool store_is_short = false; ///< of a PS shard: it lacks what it had acknowledged under its identity (R24)

  template <class Inspector>
  friend auto inspect(Inspector& f, join_reply& x) {
    return f(x.accepted, x.reason, x.agent, x.store_is_short);
  }
};

/// One role as the coordinator knows it. `self.incarnation` is the newest one issued to a start;
/// `joined` says that `at` is valid.
struct directory_entry {
  role_name role;
  dlrun::incarnation incarnation;
  bool joined = false;
  endpoint at;
  std::uint64_t token = 0; ///< of that start: who speaks under the incarnation must know it

  bool operator==(const directory_entry&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, directory_entry& x) {
    return f(x.role, x.incarnation, x.joined, x.at, x.token);
  }
};

/// Coordinator -> every joined role (R4): newest incarnation and address of every role. Highest
/// `sequence` wins.
struct directory {
  dlrun::incarnation coordinator;
  std::uint64_t sequence = 0;
  std::vector<directory_entry> entries;
  std::vector<suspect_slot> suspects{}; ///< sorted (R18)

  template <class Inspector>
  friend auto inspect(Inspector& f, directory& x) {
    return f(x.coordinator, x.sequence, x.entries, x.suspects);
  }
};

/// Coordinator -> agent: the fences that `role` may be started with, oldest first. The agent keeps
/// the ones it has not used, so it can restart a role while the coordinator is away. Idempotent:
/// fences it knows are ignored.
struct grant {
  role_name role;
  std::vector<fence> fences;
  std::uint64_t agent = 0; ///< random number of the process they are for: another one must not use them

  template <class Inspector>
  friend auto inspect(Inspector& f, grant& x) {
    return f(x.role, x.fences, x.agent);
  }
};

/// Agent -> coordinator: `role` was started with `self` (and that fence is used up).
struct role_started {
  role_name role;
  fence self;
  std::int32_t pid = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, role_started& x) {
    return f(x.role, x.self, x.pid);
  }
};

/// Agent -> coordinator: the start `self` of `role` is over.
struct role_exited {
  role_name role;
  fence self;
  std::string cause;             ///< e.g. "killed by signal 9 (SIGKILL)"
  std::uint64_t detected_us = 0; ///< from its last sign of life to the notice of its end, microseconds
  bool replaced = false;         ///< a new start follows
  bool has_progress = false; ///< a worker that ended by its own doing (a crash, no kill) in mid-computation:
  slot_progress progress{};  ///< where it was (R18)
  std::uint64_t age_us = 0;  ///< from the notice to this message, microseconds: hosts share no clock
  bool again = false; ///< told before, to an earlier coordinator or over a connection that broke: for the
                      ///< report alone, unless it is news
  bool left = false;  ///< a worker that was asked to leave (R33): no loss

  template <class Inspector>
  friend auto inspect(Inspector& f, role_exited& x) {
    return f(x.role, x.self, x.cause, x.detected_us, x.replaced, x.has_progress, x.progress, x.age_us,
             x.again, x.left);
  }
};

// ---- leases

/// Dispatcher -> worker: compute these slots of every step from now on (R5). Highest (dispatcher,
/// sequence) wins. It never ends by itself; another lease or a newer incarnation of the worker
/// replaces it.
struct lease {
  dlrun::incarnation dispatcher;
  std::uint64_t sequence = 0;
  dlrun::incarnation worker; ///< the start it is meant for
  slot_range slots;          ///< in [0, K]; may be empty
  bool on_trial = false;     ///< others have these slots too: it is measured

  template <class Inspector>
  friend auto inspect(Inspector& f, lease& x) {
    return f(x.dispatcher, x.sequence, x.worker, x.slots, x.on_trial);
  }
};

/// Worker -> dispatcher, periodic; also the acknowledgement of a lease.
struct worker_status {
  worker_id worker;
  fence self;
  timeline_id timeline;
  step_id open_step;                ///< the step it works on
  dlrun::incarnation lease_of;      ///< the dispatcher that gave the newest lease it follows
  std::uint64_t lease_sequence = 0; ///< of that lease, 0 = none
  std::uint32_t leased = 0;         ///< slots of that lease
  std::uint64_t slots_computed = 0; ///< since its start
  std::uint64_t compute_us = 0;     ///< time spent on those, and on what came to nothing, microseconds
  std::uint32_t computing = 0;      ///< slots that it is computing
  std::uint64_t computing_us = 0;   ///< for so long, microseconds
  bool leaving = false;             ///< it has handed its lease back, and ends soon (R33)
  worker_activity activity{};

  template <class Inspector>
  friend auto inspect(Inspector& f, worker_status& x) {
    return f(x.worker, x.self, x.timeline, x.open_step, x.lease_of, x.lease_sequence, x.leased,
             x.slots_computed, x.compute_us, x.computing, x.computing_us, x.leaving, x.activity);
  }
};

// ---- a step

/// Worker -> PS shard (R9): the gradient of subtree `slots` of `step` lies at `where`. Idempotent.
struct push {
  timeline_id timeline;
  worker_id worker;
  fence self;
  step_id step;
  slot_range slots;
  std::uint64_t records = 0;         ///< training records summed in it
  std::uint64_t tensor_sequence = 0; ///< must equal the tensor header's, so a reused buffer is noticed
  tensor_location where;             ///< the whole flat gradient; the shard reads its own part

  template <class Inspector>
  friend auto inspect(Inspector& f, push& x) {
    return f(x.timeline, x.worker, x.self, x.step, x.slots, x.records, x.tensor_sequence, x.where);
  }
};

/// Worker -> PS shard: what do you stand at? First contact, and again by timer. With `tries`: what
/// do you lack of `step`, too?
struct pull {
  timeline_id timeline;
  worker_id worker;
  fence self;
  step_id step{};
  std::uint32_t tries = 0; ///< how often it has asked for slots of `step`, this time included; 0: not at all

  bool operator==(const pull&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, pull& x) {
    return f(x.timeline, x.worker, x.self, x.step, x.tries);
  }
};

/// PS shard -> workers: where it stands; on apply, on commit, and as the answer to push and pull.
/// It serves versions `applied` and `applied - 1` (R8) at `parameters`.
struct shard_state {
  ps_shard_id shard;
  dlrun::incarnation incarnation;
  timeline_id timeline;
  version_id applied;
  version_id committed;
  bool serves_previous = false; ///< version applied - 1 is served too
  tensor_location parameters;
  std::vector<parked_slot> parked{}; ///< all of this timeline, sorted: their gradients are zero (R18)
  slot_range
      lacks{}; ///< to a worker that has asked for it: compute these slots of the step from `applied` (R34)

  bool operator==(const shard_state&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, shard_state& x) {
    return f(x.shard, x.incarnation, x.timeline, x.applied, x.committed, x.serves_previous, x.parameters,
             x.parked, x.lacks);
  }
};

/// PS shard -> worker: your incarnation is not the newest; nothing of yours is applied (R4).
struct fenced {
  role_name role;
  dlrun::incarnation newest;

  template <class Inspector>
  friend auto inspect(Inspector& f, fenced& x) {
    return f(x.role, x.newest);
  }
};

// ---- evaluation, the end

/// Dispatcher -> worker: evaluate the validation set at `version` (R17). Repeated until answered;
/// idempotent.
struct evaluate {
  timeline_id timeline;
  version_id version;

  bool operator==(const evaluate&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, evaluate& x) {
    return f(x.timeline, x.version);
  }
};

/// Worker -> PS shard (R17): hand me your parameters of the snapshot of `version`. Repeated until
/// answered.
struct snapshot_request {
  timeline_id timeline;
  version_id version;
  worker_id worker;
  fence self;

  template <class Inspector>
  friend auto inspect(Inspector& f, snapshot_request& x) {
    return f(x.timeline, x.version, x.worker, x.self);
  }
};

/// PS shard -> worker: they lie at `where` (transport/frozen_parameters.hpp), for a while. What has
/// gone again is asked for again.
struct snapshot_offer {
  ps_shard_id shard;
  timeline_id timeline;
  version_id version;
  tensor_location where;

  template <class Inspector>
  friend auto inspect(Inspector& f, snapshot_offer& x) {
    return f(x.shard, x.timeline, x.version, x.where);
  }
};

/// Worker -> dispatcher: its answer. Doubles travel as bit patterns.
struct evaluated {
  worker_id worker;
  dlrun::incarnation incarnation;
  timeline_id timeline;
  version_id version;
  std::uint64_t loss_sum_bits = 0;
  std::uint64_t records = 0;
  std::vector<std::uint64_t> metric_bits{}; ///< finished, in the order of engine::metric_set::names()

  bool operator==(const evaluated&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, evaluated& x) {
    return f(x.worker, x.incarnation, x.timeline, x.version, x.loss_sum_bits, x.records, x.metric_bits);
  }
};

/// Worker or PS shard -> dispatcher -> coordinator: the gradient of a step, or the version that the
/// update makes of it, is NaN or infinite. It is published nowhere where that was seen, so the
/// version before the step stays good, and the job ends. A worker sees it in its slots; where each
/// of them is finite, whoever adds them up sees it in the sum. The tree of sums is the same whoever
/// holds which slots, and so is the step.
struct divergence {
  role_name role;
  fence self;
  timeline_id timeline;
  step_id step;
  bool has_slot = false; ///< else only the sum of the slots is not finite
  slot_id slot;
  std::string text; ///< of a slot: names its records

  template <class Inspector>
  friend auto inspect(Inspector& f, divergence& x) {
    return f(x.role, x.self, x.timeline, x.step, x.has_slot, x.slot, x.text);
  }
};
inline constexpr std::string_view sum_diverged =
    "the gradient of each slot is finite, but their sum is too large for a float";

/// Coordinator -> PS shard: digests of your parameter blocks [first_block, first_block + count) at
/// version `version`.
struct digest_request {
  timeline_id timeline;
  version_id version;
  std::uint32_t first_block = 0;
  std::uint32_t count = 0; ///< at most digest_blocks_max

  template <class Inspector>
  friend auto inspect(Inspector& f, digest_request& x) {
    return f(x.timeline, x.version, x.first_block, x.count);
  }
};
inline constexpr std::uint32_t digest_blocks_max = 1024;

/// PS shard -> coordinator: SHA-256 of each block's parameters and optimizer state
/// (docs/architecture.md, "Same bits").
struct digest_reply {
  std::uint32_t first_block = 0;
  std::string digests; ///< 32 bytes a block

  template <class Inspector>
  friend auto inspect(Inspector& f, digest_reply& x) {
    return f(x.first_block, x.digests);
  }
};

/// How the job ended.
enum class job_outcome : std::uint8_t { completed, failed, interrupted };

/// Coordinator -> agent: the job is over, everything can be stopped. The report is in the run
/// folder.
struct job_ended {
  job_outcome outcome = job_outcome::failed;
  std::string reason;
  error_code code = error_code::role_lost; ///< of a job that failed: what kind of reason
  dlrun::incarnation coordinator{};        ///< who says it: the word of one that is deposed is not heard

  template <class Inspector>
  friend auto inspect(Inspector& f, job_ended& x) {
    return f(x.outcome, x.reason, x.code, x.coordinator);
  }
};

/// The name of the code that the report has; empty of a job that is completed.
inline std::string code_of(const job_ended& ended) {
  if (ended.outcome == job_outcome::completed) return {};
  return std::string{
      to_string(ended.outcome == job_outcome::interrupted ? error_code::interrupted : ended.code)};
}

/// Agent -> coordinator: the user (Ctrl-C, `dlrun stop`) or the agent itself ends the job early.
struct stop_job {
  job_outcome outcome = job_outcome::interrupted;
  std::string reason;
  error_code code = error_code::role_lost; ///< as in job_ended
  bool is_without_report = false;          ///< the run folder is not there any more, or another one is

  template <class Inspector>
  friend auto inspect(Inspector& f, stop_job& x) {
    return f(x.outcome, x.reason, x.code, x.is_without_report);
  }
};

/// The keeper of a PS shard's copy, as the agent knows it.
struct keeper_place {
  bool is_known = false;            ///< false to who is not the start in hand: nothing is said
  dlrun::incarnation incarnation{}; ///< of its start; 0: none runs
  endpoint at{};                    ///< once it can be reached
  bool counts = false;              ///< a start of the PS shard has said so, and it has run ever since
  bool moves = false;               ///< the PS shard is to end, for its next start to be there (R37)

  bool operator==(const keeper_place&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, keeper_place& x) {
    return f(x.is_known, x.incarnation, x.at, x.counts, x.moves);
  }
};

/// Agent -> role, the answer to a heartbeat: where the coordinator is now. A role that joined an
/// older start joins this one. The coordinator itself, where no connection leads to it any more, is
/// answered with 0, and joins again.
struct coordinator_location {
  dlrun::incarnation incarnation; ///< 0: none is up
  endpoint at;
  keeper_place keeper{}; ///< to a PS shard whose store has a copy

  template <class Inspector>
  friend auto inspect(Inspector& f, coordinator_location& x) {
    return f(x.incarnation, x.at, x.keeper);
  }
};

/// What a PS shard says of the copy of its store; and a keeper, once it has opened that: in
/// `keeper` to `floor`, what it holds.
struct copy_word {
  bool is_known = false;        ///< it knows whom it counts
  dlrun::incarnation counted{}; ///< it commits nothing that this start of the keeper lacks; 0: there is none
  bool is_silent = false;       ///< that has said nothing for too long
  /// What the newest copy that it has heard of holds.
  dlrun::incarnation keeper{}; ///< 0: it has heard of none
  timeline_id timeline{};
  version_id end{};
  version_id floor{};
  bool is_moving = false;     ///< it has heard that it is to move, and ends by itself (R37)
  std::uint64_t progress = 0; ///< another number: it trains, or what it waits for before that gets on

  bool operator==(const copy_word&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, copy_word& x) {
    return f(x.is_known, x.counted, x.is_silent, x.keeper, x.timeline, x.end, x.floor, x.is_moving,
             x.progress);
  }
};

/// Role -> its agent, periodic: a sign of life, and what `dlrun status` shows.
struct heartbeat {
  role_name role;
  fence self;
  std::string state{};            ///< one word: starting, training, evaluating, moving, disk-full, done
  std::uint64_t step = 0;         ///< steps applied (PS shard) or the open step (worker)
  std::uint64_t durable_step = 0; ///< of a PS shard: newest version that its successor would find on the disk
  bool has_metrics = false;
  training_metrics metrics{};
  std::uint32_t slots = 0;                ///< of a worker: of each step that it has a lease for
  std::uint64_t slots_per_kilosecond = 0; ///< that it computes, as measured; 0: not yet
  store_standing store{};                 ///< of a PS shard or keeper
  version_set restorable{};               ///< from it
  copy_word copy{};                       ///< of a PS shard whose store has a copy
  endpoint at{};                          ///< of a keeper

  template <class Inspector>
  friend auto inspect(Inspector& f, heartbeat& x) {
    return f(x.role, x.self, x.state, x.step, x.durable_step, x.has_metrics, x.metrics, x.slots,
             x.slots_per_kilosecond, x.store, x.restorable, x.copy, x.at);
  }
};

} // namespace dlrun::protocol
