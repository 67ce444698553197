/// A step, between workers and PS shards: gradients one way, versions the other.
#pragma once

#include "actors/protocol/endpoint.hpp"
#include "actors/protocol/parking.hpp"
#include "actors/protocol/reduction_tree.hpp"
#include "actors/protocol/roles.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <vector>

namespace dlrun::protocol {

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

} // namespace dlrun::protocol
