/// Messages of snapshots, rewinds and coupled quantities (rules R11 to R18). The rules of
/// messages.hpp hold.
#pragma once

#include "actors/protocol/roles.hpp"
#include "actors/protocol/timeline.hpp"

#include <vector>

namespace dlrun::protocol {

/// Dispatcher -> PS shard (R16): go on from `version` on `timeline`. Sent only when the journal has
/// it, and repeated until the shard's status shows `timeline`. A shard on that timeline or a later
/// one ignores it.
struct rewind {
  timeline_id timeline;
  version_id version;
  protocol::history history; ///< what the shard keeps from then on; its last entry is `timeline`

  bool operator==(const rewind&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, rewind& x) {
    return f(x.timeline, x.version, x.history);
  }
};

/// Dispatcher -> PS shard (R17): take a snapshot when you pass `version`. A shard that is past it
/// ignores it.
struct name_snapshot {
  timeline_id timeline;
  version_id version;

  bool operator==(const name_snapshot&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, name_snapshot& x) {
    return f(x.timeline, x.version);
  }
};

/// Dispatcher -> PS shard (R13): log and snapshots below `version` may be dropped, but not the
/// snapshot of version `kept`. Ignored on another timeline.
struct floor {
  timeline_id timeline;
  version_id version;
  dlrun::incarnation dispatcher; ///< a newer one than that of a pin ends the pin
  bool keeps = false;
  version_id kept{}; ///< the best that was evaluated below `version`

  bool operator==(const floor&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, floor& x) {
    return f(x.timeline, x.version, x.dispatcher, x.keeps, x.kept);
  }
};

/// Dispatcher -> PS shard (R17): training may go on up to version `limit`, and beyond when the next
/// evaluation is journaled. The highest of a timeline counts. Repeated until the shard's status
/// shows it.
struct go_on {
  timeline_id timeline;
  version_id limit;

  bool operator==(const go_on&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, go_on& x) {
    return f(x.timeline, x.limit);
  }
};

/// Dispatcher -> PS shard (R16a): keep `version` against any floor of this dispatcher, and show
/// that in your status.
struct pin {
  timeline_id timeline;
  dlrun::incarnation dispatcher;
  version_id version;

  bool operator==(const pin&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, pin& x) {
    return f(x.timeline, x.dispatcher, x.version);
  }
};

/// Dispatcher -> worker, PS shard (R14): say now what you keep / where you stand, with this number.
/// Repeated until answered; each is answered.
struct probe {
  std::uint64_t id = 0; ///< not 0

  bool operator==(const probe&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, probe& x) {
    return f(x.id);
  }
};

/// Worker -> dispatcher, the answer to a probe: the gradients it keeps.
struct kept {
  worker_id worker;
  fence self;
  timeline_id timeline;
  std::uint64_t probe = 0;
  std::vector<step_slots> slots{}; ///< at most reported_slots_max runs, neighbours merged

  bool operator==(const kept&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, kept& x) {
    return f(x.worker, x.self, x.timeline, x.probe, x.slots);
  }
};
/// What a message does not name counts as lost: more rewinds, never a wrong one.
inline constexpr std::size_t reported_slots_max = 1024;

/// What a status says for snapshots and rewinds (R11 to R17). Empty when nothing is kept on disk.
struct durability_status {
  protocol::history history{};
  version_set restorable{};            ///< versions it can go back to; 0 is always one
  std::vector<version_id> snapshots{}; ///< durable ones, ascending, without version 0
  std::vector<version_id> planned{};   ///< that it will take when it gets there, or is writing
  bool serves_previous = false;        ///< version applied - 1 is served too (R8)
  step_id norms_from{};                ///< it can give its norm of every step from here to applied (R12)
  std::vector<step_slots> held{};      ///< of open steps; at most reported_slots_max runs
  bool has_pin = false;
  incarnation pinned_by{}; ///< dispatcher
  version_id pinned{};
  version_id may_reach{UINT64_MAX}; ///< it makes no version above this before it hears `go_on`
  std::uint64_t replay_us =
      0; ///< how long reading its log and replaying it from its newest snapshot would take, estimated

  bool operator==(const durability_status&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, durability_status& x) {
    return f(x.history, x.restorable, x.snapshots, x.planned, x.serves_previous, x.norms_from, x.held,
             x.has_pin, x.pinned_by, x.pinned, x.may_reach, x.replay_us);
  }
};

/// PS shard -> PS shard (R12): its partial sums of a quantity that couples all blocks (a norm), one
/// number a block, in block order; std::bit_cast of doubles. Idempotent; repeated by timer while
/// the step is open.
struct norm {
  timeline_id timeline;
  ps_shard_id from;
  step_id step;
  std::vector<std::uint64_t> partials{}; ///< at most norm_partials_max

  bool operator==(const norm&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, norm& x) {
    return f(x.timeline, x.from, x.step, x.partials);
  }
};
inline constexpr std::size_t norm_partials_max = 4096;

/// PS shard -> PS shard (R12): send me your `norm` of this step. Answered when it is there.
struct norm_request {
  timeline_id timeline;
  ps_shard_id from;
  step_id step;

  bool operator==(const norm_request&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, norm_request& x) {
    return f(x.timeline, x.from, x.step);
  }
};

} // namespace dlrun::protocol
