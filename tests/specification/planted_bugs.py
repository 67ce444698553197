"""Rules of the protocol, each broken in a way that was tempting once, and where that is found.

A check that never fails shows nothing. So each rule can be broken by name, and a seed is known at which the checks say so, while
the same seed is clean with the rule kept.
"""

import collections

from actor import violation
from simulation import simulation

# `finds`: how the message of the check begins, any of several. `changes`, `faults`: direct the seed
# to where a rare one shows.
fields = collections.namedtuple("fields", "rule what finds mode seed hosts changes faults", defaults=(None, None, ()))


class planted_bug(fields):
    __slots__ = ()

    def find(self, name):
        """Runs the seed, with the bug `name` or none. @returns the message of the check that fails, or None"""
        try:
            simulation(self.seed, name, self.mode, self.hosts, changes=self.changes, more_faults=self.faults).run()
        except violation as problem:
            return str(problem)
        return None

    def is_found(self, message):
        return message is not None and message.split(":")[0] in self.finds.split(", ")


PLANTED = {
    "one_buffer": planted_bug(
        "R8", "a shard keeps the newest version of its parameters only",
        "waste", "default", 146, hosts=1, changes=dict(loss=.1), faults=("kill_W",) * 6),
    "own_floor": planted_bug(
        "R13", "a shard drops what is below its own newest snapshot",
        "liveness", "default", 7, hosts=1),
    "drop_on_publish": planted_bug(
        "R10", "a worker drops a step once every shard has published it",
        "I3", "default", 1, hosts=1),
    "drop_own_commit": planted_bug(
        "R10", "a worker drops a step once one shard has committed it",
        "I3", "default", 0, hosts=1),
    "ack_forever": planted_bug(
        "R9", "an acknowledgement outlives the start that gave it",
        "liveness", "default", 31, hosts=1),
    "max_version": planted_bug(
        "R3", "a worker believes the highest version that it ever heard of, whatever the start",
        "liveness", "default", 30, hosts=1),
    "mix_versions": planted_bug(
        "R6", "a worker computes from the newest part of each shard",
        "I2", "default", 99, hosts=1),
    "no_timeline": planted_bug(
        "R2", "a shard accepts gradients of another timeline",
        "I2", "default", 12, hosts=1),
    "no_timeline_w": planted_bug(
        "R2", "a worker accepts parameters of another timeline",
        "liveness", "default", 387, hosts=1),
    "late_journal": planted_bug(
        "R15", "the coordinator sends a rewind before it journals it",
        "liveness", "default", 12, hosts=1),
    "volatile_rewind": planted_bug(
        "R16", "a shard acts on a rewind before its marker is durable",
        "I3", "default", 3, hosts=1),
    "keep_snapshots": planted_bug(
        "R16", "a rewind leaves the snapshots above the branch in place",
        "I2", "default", 129, hosts=1),
    "no_probe": planted_bug(
        "R14", "no rewind: lost gradients are only leased again",
        "liveness", "default", 50, hosts=1),
    "no_norms": planted_bug(
        "R12", "a shard forgets its norm of a step once the step is applied",
        "waste", "default", 221, hosts=1),
    "no_bound": planted_bug(
        "R7", "early publish without a bound",
        "R7", "default", 2, hosts=1),
    "park_in_place": planted_bug(
        "R18", "a slot that is left out is announced to the shards without a rewind",
        "liveness", "default", 79, hosts=1),
    "exit_at_last": planted_bug(
        "R19", "workers and shards leave when they have seen the last version published",
        "liveness", "default", 3, hosts=1),
    "message_snap": planted_bug(
        "R17", "versions that are to be evaluated are snapshotted on request only",
        "liveness", "default", 7, hosts=1),
    "commit_own_log": planted_bug(
        "R21", "D is the end of the primary's own log: copies are not waited for",
        "I3", "default", 0),
    "count_late": planted_bug(
        "R22", "a primary counts a candidate only when it hears that the coordinator has journaled it",
        "I3", "default", 1),
    "asked_anew": planted_bug(
        "R22", "a store that was asked for may be made anew by its keeper",
        "R24, R22", "churn", 61),
    "fill_to_D": planted_bug(
        "R23", "after a start, when D is not known yet, a candidate is full when it holds the D that is known",
        "I3", "churn", 82),
    "newest_base": planted_bug(
        "R23", "a candidate is filled from the newest snapshot instead of the oldest that is kept",
        "liveness", "churn", 11),
    "blind_reset": planted_bug(
        "R23", "a store is begun anew whatever has become of it since that was decided",
        "R24", "churn", 13),
    "member_by_host": planted_bug(
        "R24", "membership belongs to a host: a store made anew there counts as the one that is gone",
        "R24", "churn", 1),
    "same_id_on_boot": planted_bug(
        "R24", "a store that may have lost its tail in a power cut keeps its identity",
        "R24, I3", "churn", 2),
    "forged_id": planted_bug(
        "R24", "an order that gives an identity does not name the start that it is for",
        "R24", "churn", 201, changes=dict(power=False, snapshots_only=False, late=.3), faults=("boot",) * 8),
    "older_id": planted_bug(
        "R24", "a keeper obeys an order for an older identity than the one that its store has",
        "R22", "churn", 148, changes=dict(late=.5, replicas=3, snapshots_only=False), faults=("cut_link",) * 10),
    "promote_any": planted_bug(
        "R25", "any host that has a store of the shard may become its primary's",
        "I3", "churn", 6),
    "cfg_unjournaled": planted_bug(
        "R25", "the coordinator tells a smaller set before it journals it",
        "I3", "default", 3),
    "keep_tail": planted_bug(
        "R26", "a copy takes the new timeline and leaves its log above the branch in place",
        "I2", "churn", 21),
    "ack_timeline": planted_bug(
        "R26", "a primary counts what a copy holds of an older timeline beyond the branch",
        "I3", "churn", 721, changes=dict(snapshots_only=True, undo=.06)),
    "two_halves": planted_bug(
        "R26", "that all counted stores are known, and what they can restore, is taken from two reports",
        "R26", "churn", 373, changes=dict(late=.4, undo=.2), faults=("kill_P",) * 6),
    "old_set": planted_bug(
        "R26", "what a shard can restore is taken from a status of another set than the journal has",
        "R26", "churn", 9, changes=dict(late=.4, undo=.2)),
    "floor_own": planted_bug(
        "R27", "the floor looks at the primaries' snapshots only",
        "R13", "churn", 92, changes=dict(snapshots_only=True), faults=("kill_pair",) * 4),
    "end_own": planted_bug(
        "R27", "the job ends when the primaries have the last version",
        "I6", "default", 1),
    "no_term": planted_bug(
        "R28", "the journal takes writes of a coordinator whose term is over",
        "R15", "default", 1, faults=("second_coordinator",) * 4),
    "stale_reader": planted_bug(
        "R28", "a new coordinator reads its journal before it takes the term",
        "I3", "default", 232, faults=("second_coordinator",) * 4),
    "one_way_beat": planted_bug(
        "R29", "a host is there when it is heard, whether or not it hears",
        "liveness", "default", 8, faults=("cut_host",) * 4),
    "deaf_leader": planted_bug(
        "R29", "a coordinator that hears fewer than half of the hosts goes on",
        "R30", "default", 43, faults=("cut_host",) * 4),
    "silent_first": planted_bug(
        "R30", "without a member in reach another store is taken at once: nobody waits for a host",
        "R30", "default", 9),
    "old_wait": planted_bug(
        "R30", "the wait for a host is counted from the first time that nobody was in reach",
        "R30", "default", 540, changes=dict(replicas=1), faults=("cut_host",) * 4),
}

# Of these the schedule is written down in specification_test.py: seeds show them once in tens of
# thousands.
SCRIPTED = {
    "any_store": ("R20", "when the journal is lost the store that seems to reach furthest is taken, member or not"),
    "begun_late": ("R23", "a store is asked for while an order to begin it anew is under way"),
    "from_oldest": ("R24", "a counted copy is sent records from its primary's oldest version on, wherever its own log begins"),
    "own_word": ("R27", "a copy refuses what is below the highest floor that it has heard, though its new primary has not"),
}
