/// Messages that never leave a process, and the forward declarations of the typed handles.
#pragma once

#include "actors/protocol/messages.hpp"

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

/// "Run this on the actor": how a thread that works for an actor (compute, tensor channel) hands its result
/// back. Has no serialised form: one that arrives from another process is empty, and does nothing.
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
/// Dispatcher -> coordinator, periodic and before training_finished: what the report is made of.
struct training_progress {
  std::vector<shard_status> shards;
  std::uint64_t slots_computed = 0; ///< by all workers, repeated and lost ones included

  template <class Inspector>
  friend auto inspect(Inspector& f, training_progress& x) {
    return f(x.shards, x.slots_computed);
  }
};
/// Dispatcher -> coordinator: every shard stands at the last version.
struct training_finished {
  template <class Inspector>
  friend auto inspect(Inspector& f, training_finished&) {
    return f();
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
/// Dispatcher -> coordinator: a start of a worker made its first contribution.
struct worker_contributed {
  first_contribution what;

  template <class Inspector>
  friend auto inspect(Inspector& f, worker_contributed& x) {
    return f(x.what);
  }
};

} // namespace dlrun::protocol
