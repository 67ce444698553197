/// Protocol rules that the simulator can break on purpose, to see itself find them. Compiled out of
/// the product: only the simulator's mutant build defines DLRUN_PLANTED_BUGS
/// (tests/simulation/README.md).
#pragma once

#include <cstdint>

namespace dlrun::protocol {

enum class planted_bug : std::uint8_t {
  none,
  // in the shipped cores
  arrival_order,    ///< I2: a shard sums gradients in the order in which they arrive
  no_timeline,      ///< R2: a shard accepts gradients of another timeline
  no_timeline_w,    ///< R2: a worker accepts parameters of another timeline
  max_version,      ///< R3: a worker believes the highest version ever heard from a shard, whatever the start
  mix_versions,     ///< R6: a worker computes from the newest part of each shard
  no_bound,         ///< R7: early publish without a bound
  one_buffer,       ///< R8: a shard keeps only the newest version of its parameters
  ack_forever,      ///< R9: an acknowledgement outlives the PS incarnation that gave it
  drop_on_publish,  ///< R10: a worker drops a step once every shard has published it
  drop_own_commit,  ///< R10: a worker drops a step once one shard has committed it
  no_norms,         ///< R12: a shard forgets its norm of a step once the step is applied
  own_floor,        ///< R13: a shard drops old snapshots and log as soon as its own new snapshot is durable
  untagged_status,  ///< R13: snapshot reports of an older timeline are kept when the floor is set
  strand_fenceless, ///< R4: a coordinator for which no fence was granted is not started again
  leave_over,       ///< R35: what runs though the coordinator was told that it is over is left alone
  no_probe,         ///< R14: no rewind: lost gradients are only leased again
  late_journal,     ///< R15: a rewind is sent before it is journaled
  lease_early,      ///< R16a: leases are sent before all shards have what the operator changed
  undo_unpinned,    ///< R16a: an undo to an old version is not preceded by a pin
  message_snap,     ///< R17: evaluation versions are snapshotted on request only
  no_gate,          ///< R17: a shard goes on before what was evaluated says that it may
  drop_best,        ///< R13: the floor takes the snapshot of the best version with it
  park_in_place,    ///< R18: a parked slot is announced to the shards without a rewind
  blame_neighbour,  ///< R18: of the records of a slot the one behind that which kills is left out
  count_parked,     ///< R18: a shard counts records that are left out among those of their slot
  scale_early,      ///< R32: the coordinator acts on a number of workers before it is journaled
  leave_early,      ///< R33: a worker leaves while it keeps what is not committed
  copy_counted,     ///< R34: a shard adds another worker's copy of a subtree to the one it holds
  one_way_beat,     ///< R29: a host that is heard is there, whether or not it answers
  deaf_leader,      ///< R29: a root that was stopped takes its own silence for that of its hosts
  follow_any,       ///< R39: a host looks for the root where any beat of it came from, not the newest
  follow_quietly,   ///< R39: a host does not answer an earlier root than the one that it follows
  misread_answer,   ///< R39: a root that was never answered believes that it was followed
  silent_first,     ///< R30: a PS shard begins elsewhere at once when the host of its store is away
  forged_id,        ///< R24: a host carries out orders for an earlier start of its agent
  trust_older,      ///< R41: a start that the journal does not know is refused, and nothing concluded from it
  trust_old,        ///< R24: what a store holds is not compared with what it had acknowledged
  stale_memory,     ///< R36: a PS shard begins with what memory has of a timeline that was left
  never_retained,   ///< R36: a PS shard begins with what its store leads to, whatever memory has
  pass_named,       ///< R36: a PS shard begins in memory beyond a version that has no snapshot yet
  leave_unsaved,    ///< R37: a PS shard without a log that is asked to leave ends at once
  leave_alone,      ///< R37: one ends before all others have its version
  leave_last,       ///< R37: so does one that has the last version
  // in host_drains, found by its property test
  leave_bare,   ///< R37: a PS shard is asked to leave a host before its copy is whole elsewhere
  drain_early,  ///< R37: a host is called drained before a copy that has a host is whole there
  drop_asked,   ///< R37: a copy that was asked for is given up though there is no host for another
  forget_drain, ///< R37: a root that comes back begins without the drains of the one before
  restless,     ///< R44: a PS shard moves to a host that has but one fewer
  settled,      ///< R44: a PS shard stays on a preemptible host, though its copy is on another
  loyal,        ///< R44: a copy stays on a host for workers, though a better one is free for it
  one_machine,  ///< R44: a copy is on the machine of its PS shard, though another one is free for it
  crowd_in,     ///< workers go to a host that takes PS shards alone
  keep_copy,    ///< R37: where copies may wait, one for which no host is in use keeps its host
  promote_any,  ///< R25: a PS shard starts where a copy is, whether or not that is whole
  share_copies, ///< two copies of a PS shard are on one host
  // in the cores of copies, found by their property test
  commit_own_log, ///< R21: a shard commits what is in its own store alone, whatever its copy lacks
  count_early,    ///< R23: a shard counts a copy that has just begun to be filled
  newest_base,    ///< R23: a copy counts that has the newest versions, but not the oldest
  keep_tail,      ///< R26: what a copy has of a timeline that was left counts on the next
  hold_nothing,   ///< R22: a copy that is nearly there holds back nothing before it counts
  drop_base,      ///< R23: what a copy is filled from is dropped meanwhile, however often
  late_floor,     ///< R27: a copy hears of the floor when it has all else
  late_snapshot,  ///< R16: a snapshot that ends after its timeline was left counts on the next
  commit_best,    ///< R21: of several copies it is enough that the best one has what is committed
  forget_others,  ///< R22: when one keeper is over no other copy counts any more
  // in the simulated shell and disk around them
  count_kills,     ///< R18: a worker that is killed from outside counts against the slot that it was at
  exit_at_last,    ///< R19: workers and shards leave when they have seen the last version published
  no_fence_store,  ///< R4: storage does not refuse the writes of an older PS incarnation
  volatile_rewind, ///< R16: a shard acts on a rewind before its marker is durable
  tell_first,      ///< R36: a version is told before it is whole in memory
  keep_snapshots,  ///< R16: a rewind leaves the snapshots above the branch version in place
  no_term,         ///< R28: a write to the journal does not compare the term
  stale_reader,    ///< R28: a coordinator reads the journal before it takes the term
};

#ifdef DLRUN_PLANTED_BUGS
constexpr bool is_planted(planted_bug configured, planted_bug bug) { return configured == bug; }
#else
constexpr bool is_planted(planted_bug, planted_bug) { return false; }
#endif

} // namespace dlrun::protocol
