"""What is checked at the event that would break it, by somebody who sees all hosts, disks and messages at once."""

from actor import violation
from stores import cut


class checks:
    def __init__(self, simulation):
        self.simulation = simulation
        self.promises = {shard: (0, 0) for shard in range(simulation.job.shards)}  # newest (timeline, D) that a primary has said
        self.promised_by = {}  # PS shard -> the start that said it
        self.said = {}  # identity -> (timeline, versions) that the store has acknowledged
        self.unclean = set()  # PS shards that began from less than what was committed: no host that held it was in reach (R30)
        self.history = {}  # of all timelines there ever were, also those of a journal that is lost
        self.floor = self.lost_gradients = 0

    # ---- what is not held against the rules

    def exempt(self, shard):
        return shard in self.unclean or self.simulation.faults.disk_lost or self.simulation.damage

    def something_lost(self):
        faults = self.simulation.faults
        return bool(faults.power_lost_tail or faults.disk_lost or self.unclean)

    # ---- who is in sync, and what it holds

    def member(self, shard, host, identity):
        kept = self.simulation.hosts[host].stores.get(shard)
        return kept if kept is not None and kept.identity == identity else None

    def members(self):
        """The stores that the journal has for in sync, as far as they exist."""
        found = [self.member(shard, *member) for shard, (_, members) in self.simulation.journal.sets.items() for member in members]
        return [kept for kept in found if kept is not None]

    def in_sync(self, shard):
        return [identity for _, identity in self.simulation.journal.sets.get(shard, (0, ()))[1]]

    def counts(self, shard, identity):
        """A store of the journaled set, or one that the newest primary has asked for."""
        if identity in self.in_sync(shard):
            return True
        newest = self.simulation.journal.incarnations.get(("P", shard))
        return any(one.copies.asked and one.copies.asked[1][1] == identity and one.incarnation == newest
                   for one in self.simulation.running.get(("P", shard), ()))

    def faithful(self, kept, when, held=None):
        """R24: a store that counts holds, at or above its floor, what it has acknowledged."""
        if kept.identity not in self.said or self.simulation.damage or not self.counts(kept.shard, kept.identity):
            return
        timeline, versions = self.said[kept.identity]
        if timeline <= kept.timeline:
            versions = cut(versions, timeline, kept.timeline, kept.history)
        missing = {version for version in versions if version >= kept.floor} - (held or kept.durable())
        if missing:
            raise violation(f"R24: a store of shard {kept.shard}, which counts, is emptier than it has acknowledged ({when}): "
                            f"it lacks {sorted(missing)} and has {sorted(kept.durable())} of timeline {kept.timeline}")

    def acknowledged(self, kept, held):
        self.faithful(kept, "as a copy", held)
        self.said[kept.identity] = (kept.timeline, frozenset(held))

    def relied_on(self, shard, identity, said):
        """A primary counts a candidate, because of what it said."""
        for host in self.simulation.hosts:
            kept = host.stores.get(shard)
            if kept is not None and kept.identity == identity:
                self.said[identity] = (said.timeline, frozenset(said.versions))
                self.faithful(kept, "when it is asked for")
                self.nothing_to_begin(kept)

    def nothing_to_begin(self, kept):
        """R23: no order is under way that it would obey and be emptied by."""
        for _, _, call, _, arguments in self.simulation.events:
            if call != self.simulation.deliver or arguments[2][0] != "copy":
                continue
            _, _, opener, identity, *_, items = arguments[2]
            if identity == kept.identity and opener >= kept.opener and any(item[:2] == ("begin", kept.change) for item in items):
                raise violation(f"R23: a store of shard {kept.shard} is asked for while an order to begin it anew is under way")

    def can_append(self, shard, said, items):
        """R24: what a counted copy is sent begins with something that its log leads on from."""
        steps = [step for kind, step, *_ in items if kind == "record"]
        if steps and not set(range(min(steps), said.end + 1)) <= said.restorable:
            raise violation(f"R24: a counted copy of shard {shard} is sent records from {min(steps)} on, which it cannot append")

    def many_kept(self, known):
        """R10: more than B + 2 steps only where snapshots alone are durable, or after a shard came back with less, or does not know yet
        what its copies have."""
        came_back = any(incarnation > self.promised_by.get(shard, 0) and committed < self.promises[shard][1]
                        for shard, (incarnation, _, committed) in known.items())
        if not (self.simulation.snapshots_only or self.something_lost() or came_back):
            raise violation("I5: a worker holds more than B + 2 steps")

    def has_lost_data(self, shard, identity):
        exists = any(shard in host.stores and host.stores[shard].identity == identity for host in self.simulation.hosts)
        if exists and self.simulation.bug is None:
            raise violation(f"waste: a copy of shard {shard} is said to have lost data, and has not")

    # ---- what was promised

    def opened(self, kept):
        self.faithful(kept, "as it is opened")
        if not self.exempt(kept.shard) and kept.identity in self.in_sync(kept.shard):
            self.holds(kept, "starts")

    def loaded(self, primary):
        simulation, faults = self.simulation, self.simulation.faults
        if self.exempt(primary.number):
            self.promises[primary.number] = (primary.timeline, 0)
        if (self.something_lost() or (faults.journal_lost and simulation.host_count > 1) or simulation.snapshots_only
                or simulation.damage):
            return
        for role, starts in simulation.running.items():
            for other in starts:
                if role[0] == "P" and other.timeline == primary.timeline:
                    self.near(primary, other)

    def near(self, primary, other):
        """R7: beyond B + 1 versions only by steps of which nothing is left, which need nobody's push."""
        needed = other.applied
        while needed > primary.applied and other.revision.leaves_out(needed - 1, self.simulation.job.slots):
            needed -= 1
        if needed - primary.applied > self.simulation.bound + 1:
            raise violation("R7: shards more than B + 1 versions apart")

    def promised(self, primary):
        """D was said: from now on no loss of fewer hosts than there are copies may undo it."""
        shard, said = primary.number, (primary.timeline, primary.committed)
        if (self.exempt(shard) or said <= self.promises[shard] or primary.store.identity not in self.in_sync(shard)
                or primary.incarnation != self.simulation.journal.incarnations.get(primary.role)):
            return
        self.promises[shard], self.promised_by[shard] = said, primary.incarnation
        for kept in self.members():
            if kept.shard == shard:
                self.holds(kept, "is in sync")

    def holds(self, kept, what):
        timeline, version = self.promises[kept.shard]
        if kept.timeline <= timeline:
            end = max(kept.of_timeline(timeline, self.simulation.journal.history))
        else:
            end = max(kept.durable())
            branches = [branch for at, (branch, _) in kept.history.items() if timeline < at <= kept.timeline]
            version = min([*branches, version])
        if end < version:
            raise violation(f"I3: a copy of shard {kept.shard} {what}, but lacks committed version {version}: "
                            f"it has {sorted(kept.durable())} of timeline {kept.timeline}")

    def forgotten(self, worker, step):
        simulation = self.simulation
        if simulation.snapshots_only or simulation.journal.timeline != worker.timeline or self.something_lost():
            return
        for kept in self.members():
            if kept.timeline <= worker.timeline and max(kept.of_timeline(worker.timeline, simulation.journal.history)) <= step:
                raise violation(f"I3: {worker.role} forgets step {step}, which a copy of shard {kept.shard} lacks")

    # ---- what the coordinator does

    def journaled(self, entries):
        for timeline, (_, trained) in entries.get("history", {}).items():
            self.simulation.revisions.setdefault(timeline, trained)
        if "sets" in entries:
            for kept in self.members():
                if not self.exempt(kept.shard):
                    self.holds(kept, "is journaled as in sync")

    def begun(self, shard):
        self.promises[shard] = (0, 0)

    def begins_with_best(self, shard, members, journal_lost, came_back):
        """R30: with less than what was committed only when no member can come back, and none did while it was waited for."""
        simulation = self.simulation
        if came_back and simulation.bug != "silent_first":
            raise violation(f"R30: a member of shard {shard} came back, and its host is not waited for anew")
        back = [kept for host, identity in members for kept in [self.member(shard, host, identity)]
                if kept is not None and simulation.hosts[host].up and host not in simulation.lost_hosts]
        if members and back and not journal_lost:
            raise violation(f"R30: an older copy of shard {shard} is taken although one in sync is there")
        self.unclean.add(shard)
        simulation.count["begun without a member"] += 1

    def recovered(self, shard, host, best, is_there):
        """R20: what is taken when the journal is lost has what was committed, if every host is there to tell."""
        simulation, faults = self.simulation, self.simulation.faults
        kept, (timeline, version) = simulation.hosts[host].stores.get(shard), self.promises[shard]
        behind = (kept is not None and best < (timeline, version)
                  and version > max(cut(kept.durable(), kept.timeline, timeline, self.history)))
        if kept is not None and not behind:
            return
        survives = any(shard in one.stores and one.stores[shard].identity in faults.before_loss.get(shard, ())
                       for one in simulation.hosts)
        all_there = all(one.up and is_there(one.number) for one in simulation.hosts)
        if all_there and survives and not self.exempt(shard) and not faults.power_lost_tail:
            raise violation(f"R20: shard {shard} lost version {version} with its journal")
        self.unclean.add(shard)

    def rewound(self, timeline, version, why, history, statuses):
        simulation, faults = self.simulation, self.simulation.faults
        simulation.revisions[timeline] = history[timeline][1]
        self.history |= history
        simulation.count["rewinds"] += 1
        self.of_one_moment(statuses)
        self.lost_gradients += why == "lost"
        for kept in self.members():
            place = simulation.journal.places.get(("P", kept.shard))
            if place is not None and simulation.hosts[place].stores.get(kept.shard) is kept:
                continue  # of its own store a primary says what is not synced yet, too
            known = kept.shard in statuses and kept.opener <= statuses[kept.shard]["incarnation"]
            if known and not simulation.damage and version not in kept.of_timeline(timeline, history):
                raise violation(f"R26: all go back to {version}, which a copy of shard {kept.shard} in its set does not have")
        if why != "undo" and version < self.floor and not (simulation.damage or self.something_lost()):
            raise violation(f"R13: a rewind to {version}, below the floor {self.floor}")
        self.floor = min(self.floor, version)

    def of_one_moment(self, statuses):
        """R26: what decides on a rewind is said by reports that know all counted stores of the journaled sets."""
        for shard, status in statuses.items():
            if not status["known"]:
                raise violation(f"R26: all go back by a report of shard {shard} that does not know what its copies have")
            if status["number"] != self.simulation.journal.sets[shard][0]:
                raise violation(f"R26: all go back by a report of shard {shard} about another set than the journaled one")

    def floor_named(self, timeline, floor, statuses):
        if timeline == self.simulation.journal.timeline and all(status["timeline"] == timeline for status in statuses.values()):
            self.floor = max(self.floor, floor)

    def job_over(self):
        """I2, I6: everything is there, and nothing was redone without a reason."""
        simulation, faults, journal = self.simulation, self.simulation.faults, self.simulation.journal
        simulation.done = True
        last, expected = simulation.job.steps, simulation.job.expected(journal.revision)
        for kept in self.members():
            if kept.timeline != journal.timeline or last not in kept.snapshots:
                if faults.disk_lost:
                    continue  # between its last report and the end
                raise violation(f"I6: the job is over, but a copy of shard {kept.shard} lacks the last version")
            if kept.snapshots[last] != expected[last][kept.shard]:
                raise violation(f"I2: wrong final parameters on shard {kept.shard}")
        for version in simulation.to_evaluate:
            if journal.evaluations.get(version) != expected[version]:
                raise violation(f"I2: wrong or missing evaluation at version {version}")
        if journal.revision.parked - simulation.poison:
            raise violation("I6: good data is left out")
        planned = faults.operator or simulation.poison or faults.disk_lost or faults.journal_lost or self.unclean
        if not planned and "P" not in faults.lost_roles and simulation.count["rewinds"]:
            raise violation("waste: a rewind although no PS shard was ever lost")
        if ("W" not in faults.lost_roles and not simulation.snapshots_only and not self.something_lost()
                and self.lost_gradients):
            raise violation("waste: a rewind for lost gradients although no worker was ever lost")
        simulation.say(None, "OVER", dict(simulation.count))
