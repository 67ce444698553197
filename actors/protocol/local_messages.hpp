/// Messages that never leave a process, and the forward declarations of the typed handles.
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/status_messages.hpp"

#include <functional>
#include <memory>

namespace dlrun::protocol {

/// An actor's own clock.
struct tick {
  template <class Inspector>
  friend auto inspect(Inspector& f, tick&) {
    return f();
  }
};

/// "Run this on the actor": how a thread that works for an actor (compute, tensor channel) hands
/// its result back. Has no serialised form: a control connection lets none through.
struct continuation {
  std::shared_ptr<const std::function<void()>> run;

  template <class Inspector>
  friend auto inspect(Inspector& f, continuation&) {
    return f();
  }
};

/// Coordinator -> dispatcher: this start can take work.
struct worker_available {
  worker_id worker;
  dlrun::incarnation incarnation;

  template <class Inspector>
  friend auto inspect(Inspector& f, worker_available& x) {
    return f(x.worker, x.incarnation);
  }
};
/// Coordinator -> dispatcher: this start is over.
struct worker_gone {
  worker_id worker;
  dlrun::incarnation incarnation;

  template <class Inspector>
  friend auto inspect(Inspector& f, worker_gone& x) {
    return f(x.worker, x.incarnation);
  }
};
/// What one start of a worker or PS shard says it has done so far, for the report.
struct start_tally {
  role_name role;
  dlrun::incarnation incarnation;
  std::uint64_t slots_computed = 0;                      ///< of a worker; repeated and lost ones included
  std::uint64_t bytes_logged = 0, bytes_snapshotted = 0; ///< of a PS shard
  std::uint64_t bytes_copied = 0, copy_waited_us = 0;    ///< the same

  bool operator==(const start_tally&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, start_tally& x) {
    return f(x.role, x.incarnation, x.slots_computed, x.bytes_logged, x.bytes_snapshotted, x.bytes_copied,
             x.copy_waited_us);
  }
};
/// Dispatcher -> coordinator, periodic and before training_finished: what the report is made of.
struct training_progress {
  std::vector<shard_status> shards;
  std::vector<start_tally> tallies; ///< of the newest start of each role

  template <class Inspector>
  friend auto inspect(Inspector& f, training_progress& x) {
    return f(x.shards, x.tallies);
  }
};
/// Dispatcher -> coordinator: every shard stands at the last version, durably where state is
/// durable, and all evaluations are journaled (R19). Once a timeline.
struct training_finished {
  timeline_id timeline;
  version_id version; ///< the last one: N, or where training was stopped early

  template <class Inspector>
  friend auto inspect(Inspector& f, training_finished& x) {
    return f(x.timeline, x.version);
  }
};
/// Coordinator -> dispatcher, repeated: the job is to end on this timeline.
struct close_training {
  timeline_id timeline;

  template <class Inspector>
  friend auto inspect(Inspector& f, close_training& x) {
    return f(x.timeline);
  }
};
/// Dispatcher -> coordinator, the answer: nobody goes back from here any more. None while it is not
/// finished there.
struct training_closed {
  timeline_id timeline;

  template <class Inspector>
  friend auto inspect(Inspector& f, training_closed& x) {
    return f(x.timeline);
  }
};
/// Dispatcher -> coordinator: the slots of a lost worker are with others.
struct slots_redispatched {
  worker_id lost;
  dlrun::incarnation incarnation;
  std::uint64_t after_us = 0; ///< since the notice of the loss, microseconds

  template <class Inspector>
  friend auto inspect(Inspector& f, slots_redispatched& x) {
    return f(x.lost, x.incarnation, x.after_us);
  }
};
/// Coordinator -> dispatcher: this start of a PS shard has joined.
struct ps_shard_available {
  ps_shard_id shard;
  dlrun::incarnation incarnation;

  template <class Inspector>
  friend auto inspect(Inspector& f, ps_shard_available& x) {
    return f(x.shard, x.incarnation);
  }
};
/// Coordinator -> dispatcher: this start is over: what it said counts no more.
struct ps_shard_gone {
  ps_shard_id shard;
  dlrun::incarnation incarnation;

  template <class Inspector>
  friend auto inspect(Inspector& f, ps_shard_gone& x) {
    return f(x.shard, x.incarnation);
  }
};
/// Dispatcher -> coordinator: this start of a PS shard has made a version beyond those it restored.
struct ps_shard_resumed {
  ps_shard_id shard;
  dlrun::incarnation incarnation;
  version_id version;

  template <class Inspector>
  friend auto inspect(Inspector& f, ps_shard_resumed& x) {
    return f(x.shard, x.incarnation, x.version);
  }
};
/// Coordinator -> dispatcher (R18): this slot has crashed its worker too often: train without it.
struct poisoned_slot {
  parked_slot what;

  template <class Inspector>
  friend auto inspect(Inspector& f, poisoned_slot& x) {
    return f(x.what);
  }
};
/// Dispatcher -> coordinator: training went back, and why; once it is journaled.
struct timeline_started {
  timeline_id timeline;
  version_id branch;
  std::uint64_t steps_redone = 0; ///< the most that any shard had applied beyond `branch`
  std::string reason;
  bool on_purpose = false; ///< the operator wanted it: no loss was the cause

  bool operator==(const timeline_started&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, timeline_started& x) {
    return f(x.timeline, x.branch, x.steps_redone, x.reason, x.on_purpose);
  }
};
/// Dispatcher -> coordinator: a start of a worker made its first contribution.
struct worker_contributed {
  first_contribution what;

  template <class Inspector>
  friend auto inspect(Inspector& f, worker_contributed& x) {
    return f(x.what);
  }
};

} // namespace dlrun::protocol
