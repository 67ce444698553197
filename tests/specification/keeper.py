"""The keeper of a host: holds the stores of PS shards whose primary is elsewhere (R21-R27)."""

import collections

from actor import actor, violation
from stores import lowest_branch, store

# What a store says of itself. `versions` are those it can restore from what its durability
# protects; `restorable` also has what is not synced yet, and `end` is the end of its log. Below
# `floor` it may lack versions.
have = collections.namedtuple("have", "sequence timeline versions snapshots heard change end restorable floor")

NOT_HERE, ANOTHER_START = "not here", "another start"


class keeper(actor):
    def __init__(self, simulation, host, incarnation):
        super().__init__(simulation, ("K", host), incarnation, host)

    # ---- whose store it is

    def on_copy(self, sender, shard, opener, identity, candidate, start, in_sync, timeline, history, floor, items):
        stores = self.simulation.hosts[self.host].stores
        kept = stores.get(shard)
        if kept is None or kept.identity != identity:
            kept = self.take_over(sender, shard, opener, identity, candidate, start, in_sync)
            if kept is None:
                return
        if opener < kept.opener:
            self.send(sender, "store_fenced", kept.opener)
            return
        kept.opener = opener
        if in_sync[0] > kept.in_sync[0]:
            kept.in_sync = in_sync
        if timeline > kept.timeline:
            self.follow(kept, timeline, history)
        if timeline == kept.timeline:
            self.obey(kept, sender, opener, timeline, floor, items)
        self.say_have(sender, kept)

    def take_over(self, sender, shard, opener, identity, candidate, start, in_sync):
        """R24: only what is to be filled may be made, or take over what is there. @returns the store, or None"""
        simulation, stores = self.simulation, self.simulation.hosts[self.host].stores
        if not candidate and simulation.bug != "member_by_host":
            self.send(sender, "no_have", identity, self.incarnation, NOT_HERE)
            return None
        if candidate and start != self.incarnation and simulation.bug != "forged_id":
            self.send(sender, "no_have", identity, self.incarnation, ANOTHER_START)
            return None
        kept = stores.get(shard)
        if kept is None:
            kept = stores[shard] = store(simulation, shard, identity)
        if opener < kept.opener or kept.identity in [member for _, member in max(in_sync, kept.in_sync)[1]]:
            return None  # nor does it take over a member
        if kept.identity > identity and simulation.bug != "older_id":
            return None  # identities grow: an order for an older candidate comes late
        if kept.identity != identity and simulation.checks.counts(shard, kept.identity):
            raise violation(f"R22: the store of shard {shard} on host {self.host} counts, and is given another identity")
        kept.identity = identity
        kept.change += 1
        return kept

    # ---- what it is told to do with it

    def follow(self, kept, timeline, history):
        """R26: history and truncation in one synced write."""
        kept.change += 1
        branch = lowest_branch(history, kept.timeline, timeline)
        if branch is None:
            raise violation("R16: a primary is on a timeline that its history does not have")
        kept.history = history
        if self.simulation.bug != "keep_tail":
            kept.truncate(branch)
        self.simulation.say(self, "copy of", kept.shard, "goes to timeline", timeline, "at", branch)

    def obey(self, kept, sender, opener, timeline, floor, items):
        simulation = self.simulation
        for kind, *item in items:
            if kind == "begin":  # R23: anew, if it still is what that was decided upon
                if kept.change == item[0] or simulation.bug == "blind_reset":
                    kept.begin_anew(*item[1:])
            elif kind == "record":
                simulation.after(simulation.log_delay(), self.append, self, kept, opener, timeline, sender, *item)
            elif kind == "snapshot":
                simulation.after(simulation.snapshot_delay(), self.take_snapshot, self, kept, opener, timeline, sender, *item)
            elif item[0] in kept.durable() and item[0] not in kept.snapshots:
                simulation.after(simulation.snapshot_delay(), self.make_snapshot, self, kept, opener, timeline, sender, *item)
        begin = max([snapshot for snapshot in kept.snapshots if snapshot <= floor] or [0])
        if floor > kept.floor and begin in kept.snapshots:
            kept.floor = floor
            kept.change += 1
            kept.drop_below(floor)

    def still(self, kept, opener, timeline):
        return (self.simulation.hosts[self.host].stores.get(kept.shard) is kept and kept.opener == opener
                and kept.timeline == timeline)

    def append(self, kept, opener, timeline, sender, step, entry):
        if not self.still(kept, opener, timeline):
            return
        if step in kept.log and step < kept.appended:
            if kept.log[step] != entry:
                raise violation(f"I2: two copies of the record of step {step} differ")
        elif step == kept.appended and step in kept.restorable():  # only at its end
            kept.log[step] = entry
            kept.appended = step + 1
            kept.change += 1
        if self.simulation.power:
            self.simulation.after(self.simulation.log_delay(), self.sync, self, kept, opener, timeline, sender, kept.appended)
        else:
            self.say_have(sender, kept)

    def sync(self, kept, opener, timeline, sender, end):
        if self.still(kept, opener, timeline):
            kept.synced = max(kept.synced, min(end, kept.appended))
            kept.change += 1
            self.say_have(sender, kept)

    def wanted(self, kept, version):
        """R27: what its primary sends is wanted, whatever floor it has heard."""
        return version >= kept.floor or self.simulation.bug != "own_word"

    def take_snapshot(self, kept, opener, timeline, sender, version, parameters):
        if self.still(kept, opener, timeline) and version not in kept.snapshots and self.wanted(kept, version):
            if version > kept.appended:
                kept.appended = kept.synced = version
            kept.snapshots[version] = parameters
            kept.change += 1
            self.say_have(sender, kept)

    def make_snapshot(self, kept, opener, timeline, sender, version):
        """From its own log: the same bits (R23)."""
        if not self.still(kept, opener, timeline) or version not in kept.durable() or not self.wanted(kept, version):
            return
        parameters = kept.restore(version)
        if parameters != self.simulation.expected(kept.timeline)[version][kept.shard]:
            raise violation(f"I2: a copy of shard {kept.shard} holds a wrong version {version}")
        kept.synced = max(kept.synced, min(version, kept.appended))
        kept.snapshots[version] = parameters
        kept.change += 1
        self.say_have(sender, kept)

    def say_have(self, receiver, kept):
        versions = kept.durable()
        self.simulation.checks.acknowledged(kept, versions)
        self.sequence += 1
        self.send(receiver, "have", kept.identity, have(
            (self.incarnation, self.sequence), kept.timeline, versions, set(kept.snapshots), None, kept.change,
            kept.appended, kept.restorable(), kept.floor))
