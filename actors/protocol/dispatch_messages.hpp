/// Between data dispatcher and workers: which slots, how far, and evaluations.
#pragma once

#include "actors/protocol/reduction_tree.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/stall_messages.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <vector>

namespace dlrun::protocol {

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

} // namespace dlrun::protocol
