"""A PS shard: the one process of its shard that applies steps (R1-R19), and the primary of its copies (R21-R27)."""

import collections

from actor import actor, violation
from arithmetic import insert
from copies import copies
from stores import record


class ps_shard(actor):
    def __init__(self, simulation, number, incarnation, host, in_sync):
        super().__init__(simulation, ("P", number), incarnation, host)
        self.number, self.store = number, simulation.hosts[host].stores[number]
        self.load_count, self.fences, self.term, self.committed = 0, {}, 0, 0
        self.copies = copies(self, in_sync)
        if self.store.opener >= incarnation:
            self.end("storage was opened by a newer start")
            return
        self.store.opener = incarnation  # R4: single writer
        if simulation.damage and len(self.store.snapshots) > 1 and simulation.chance() < simulation.damage:
            simulation.say(self, "newest snapshot damaged")
            del self.store.snapshots[max(self.store.snapshots)]
        self.store.synced = self.store.appended  # R11: what is found is synced before it is used
        if in_sync[0] > self.store.in_sync[0]:
            self.store.in_sync = in_sync
        simulation.checks.opened(self.store)
        self.load(max(self.store.restorable()))
        simulation.checks.loaded(self)

    # ---- versions

    def load(self, version):
        job, kept = self.simulation.job, self.store
        self.load_count += 1
        kept.truncate(version, keep_snapshots=self.simulation.bug == "keep_snapshots")
        kept.appended = kept.synced = 0 if self.simulation.snapshots_only else version
        self.timeline, self.revision, self.applied = kept.timeline, kept.revision, version
        self.parameters = kept.restore(version)
        has_before = version and version - 1 in kept.restorable() and self.simulation.bug != "one_buffer"
        self.before = kept.restore(version - 1) if has_before else None  # R8
        self.steps, self.others_norms, self.norms, self.pending = {}, {}, {}, collections.deque()
        self.wanted, self.writing, self.pin = set(), set(), None
        self.committed, self.found = 0, max(kept.durable())  # R23: what was committed is at most what is found
        self.commit()
        self.check()
        self.simulation.say(self, "loads version", version, "timeline", self.timeline)
        for named in sorted(self.simulation.to_evaluate | {job.steps}):  # R17: those that a crash cut short
            if (named <= version and named not in kept.snapshots and named in kept.restorable()
                    and self.simulation.bug != "message_snap"):
                self.write_snapshot(named, kept.restore(named))
        self.simulation.after(0, self.advance, self)  # R18: a step whose slots are all parked needs no push

    def check(self):
        if self.parameters != self.simulation.expected(self.timeline)[self.applied][self.number]:
            raise violation(f"I2: {self.role} holds a wrong version {self.applied} on timeline {self.timeline}")

    def commit(self):
        """R21: D is what this store and every counted one have; within (timeline, incarnation) it only grows."""
        versions = set(self.store.snapshots) | {0} if self.simulation.snapshots_only else self.store.durable()
        if self.simulation.bug != "commit_own_log":
            versions = self.copies.common(versions)
        newest = max(versions or [0])
        if newest <= self.committed:
            return False
        self.committed = newest
        self.simulation.checks.promised(self)
        return True

    def owns_store(self):
        if self.store.opener == self.incarnation:
            return True
        self.end("fenced by storage")
        return False

    # ---- copies

    def on_have(self, sender, identity, said):
        if not self.copies.on_have(said, identity):
            return
        grew = self.commit()
        self.copies.ask_for(identity)
        if grew:
            self.say_committed()
        self.copies.look_for_losses(identity)
        if said.timeline == self.timeline and self.copies.lacking(identity):
            self.copies.ship(identity)

    def on_no_have(self, sender, identity, start, why):
        self.copies.on_no_have(identity, start, why)

    def on_store_fenced(self, sender, opener):
        if opener > self.incarnation:
            self.end("a copy was opened by a newer start")

    def on_set(self, sender, term, incarnation, in_sync, candidates):
        if term < self.term or incarnation != self.incarnation:
            return
        self.term = term
        newer = self.copies.on_set(in_sync, candidates)
        if newer:
            self.store.in_sync = in_sync
            if self.store.identity not in [identity for _, identity in in_sync[1]]:
                self.end("its store is not a member any more")
                return
            if self.commit():
                self.say_committed()

    # ---- gradients (R2, R5, R7)

    def on_push(self, sender, timeline, worker, incarnation, step, node, gradient):
        if incarnation < self.fences.get(worker, 0):
            self.send(sender, "fenced", worker, self.fences[worker])  # R4
            return
        if timeline != self.timeline and self.simulation.bug != "no_timeline":
            self.say_state(sender)  # R2
            return
        if self.applied <= step <= self.applied + self.simulation.bound + 1 and step < self.simulation.job.steps:
            insert(self.opened(step), node, gradient, self.simulation.job.tree)
            self.advance()
        self.say_state(sender)

    def opened(self, step):
        if step not in self.steps:
            self.steps[step] = {}
            for parked, slot in sorted(self.revision.parked):
                if parked == step:
                    gradient = self.simulation.job.parked_gradient(self.number, step, slot)
                    insert(self.steps[step], (slot, slot + 1), gradient, self.simulation.job.tree)
        return self.steps[step]

    def may_apply(self):
        return (self.simulation.snapshots_only or self.simulation.bug == "no_bound"
                or self.applied + 1 - self.committed <= self.simulation.bound)  # R7

    def advance(self):
        job = self.simulation.job
        while self.applied < job.steps and (0, job.slots) in self.opened(self.applied):
            root, coupled = self.steps[self.applied][(0, job.slots)], 0
            if job.coupled:  # R12: one exchange
                coupled = self.coupled_norm(root)
                if coupled is None:
                    return
            if not self.may_apply():
                return
            self.apply(root, coupled)
            if self.simulation.bug == "exit_at_last" and self.applied == self.committed == job.steps:
                self.end("the job is over (bug)")
                return

    def coupled_norm(self, root):
        job, step = self.simulation.job, self.applied
        if step not in self.norms:
            self.norms[step] = job.norm(root)
            self.share_norm(step)
        found = dict(self.others_norms.get(step, {}))
        if len(found) < job.shards - 1:
            return None
        found[self.number] = self.norms[step]
        return hash(tuple(found[shard] for shard in range(job.shards)))

    def apply(self, root, coupled):
        simulation, job, step = self.simulation, self.simulation.job, self.applied
        self.before = self.parameters if simulation.bug != "one_buffer" else None
        self.parameters = job.update(self.parameters, root, coupled, self.revision.salts[step])
        self.applied = step + 1
        self.check()
        if not simulation.snapshots_only and self.applied - self.committed > simulation.bound:
            raise violation("R7: more than B versions ahead of what is committed")
        self.steps.pop(step)
        self.others_norms.pop(step, 0)
        self.forget_norms(step)
        simulation.say(self, "publishes version", self.applied)
        if not simulation.snapshots_only:
            self.pending.append((step, record(root, coupled, self.norms.get(step, 0), self.revision.salts[step])))
            simulation.after(simulation.log_delay(), self.append, self, self.load_count)
        named = self.applied in simulation.to_evaluate and simulation.bug != "message_snap"  # R17
        if self.applied in self.wanted or self.applied == job.steps or named:
            self.write_snapshot(self.applied, self.parameters)
        for worker in range(simulation.workers):
            self.say_state(("W", worker), self.applied, self.parameters)

    def forget_norms(self, step):
        if self.simulation.bug == "no_norms":
            self.norms.pop(step, 0)
        kept_from = self.applied - 1
        if not self.simulation.snapshots_only:
            kept_from = min(kept_from, self.committed)
        self.norms = {at: norm for at, norm in self.norms.items() if at >= kept_from}

    # ---- log and snapshots (R7, R11)

    def append(self, load_count):
        if load_count != self.load_count or not self.pending or not self.owns_store():
            return
        step, entry = self.pending.popleft()
        self.store.log[step] = entry
        self.store.appended = step + 1
        if self.simulation.power:
            self.simulation.after(self.simulation.log_delay(), self.sync, self, load_count, step + 1)
        else:
            self.logged()

    def sync(self, load_count, end):
        if load_count == self.load_count and self.owns_store():
            self.store.synced = max(self.store.synced, end)
            self.logged()

    def logged(self):
        self.copies.ship()
        if self.commit():
            self.say_committed()

    def say_committed(self):
        self.simulation.say(self, "committed", self.committed)
        for worker in range(self.simulation.workers):
            self.say_state(("W", worker))
        self.advance()

    def write_snapshot(self, version, parameters):
        self.writing.add(version)
        self.simulation.after(self.simulation.snapshot_delay(), self.snapshot_written, self, self.load_count, version,
                              parameters)

    def snapshot_written(self, load_count, version, parameters):
        """R11: never ahead of the log, in version order; the log up to it is synced with it."""
        if load_count != self.load_count or not self.owns_store():
            return
        ahead = self.committed < version and self.store.committed() < version
        if (not self.simulation.snapshots_only and ahead) or any(other < version for other in self.writing):
            self.simulation.after(3, self.snapshot_written, self, load_count, version, parameters)
            return
        self.store.synced = max(self.store.synced, min(version, self.store.appended))
        self.writing.discard(version)
        self.store.snapshots[version] = parameters
        self.simulation.say(self, "snapshot", version, "durable")
        if self.simulation.bug == "own_floor":
            self.drop_below(version)
        self.logged()

    def drop_below(self, floor):
        self.store.floor = max(self.store.floor, floor)
        self.store.drop_below(floor)

    # ---- norms of coupled quantities (R12)

    def share_norm(self, step):
        for shard in range(self.simulation.job.shards):
            if shard != self.number:
                self.send(("P", shard), "norm", self.timeline, self.number, step, self.norms[step])

    def on_norm(self, sender, timeline, shard, step, norm):
        if timeline == self.timeline and step >= self.applied:
            self.others_norms.setdefault(step, {})[shard] = norm
            self.advance()

    def own_norm(self, step):
        return self.norms.get(step) or (self.store.log[step].norm if step in self.store.log else 0)

    def on_norm_request(self, sender, timeline, step):
        if timeline == self.timeline and self.own_norm(step):
            self.send(sender, "norm", self.timeline, self.number, step, self.own_norm(step))

    def lowest_norm(self):
        step = self.applied
        while step and self.own_norm(step - 1):
            step -= 1
        return step

    # ---- what others may ask

    def say_state(self, receiver, version=-1, parameters=0):
        self.send(receiver, "params", self.number, self.incarnation, self.timeline, self.revision, self.applied, self.committed,
                  version, parameters)

    def on_pull(self, sender, timeline, version):
        found = self.parameters if version == self.applied else self.before if version == self.applied - 1 else None  # R8
        if timeline == self.timeline and found is not None:
            self.say_state(sender, version, found)
        else:
            self.say_state(sender)

    def on_evaluation_pull(self, sender, timeline, version):
        if timeline == self.timeline and version in self.store.snapshots and self.owns_store():
            self.send(sender, "evaluation_part", self.number, timeline, version, self.store.snapshots[version])  # R17

    # ---- the coordinator's words

    def on_rewind(self, sender, timeline, version, history):
        if timeline <= self.timeline or not self.owns_store() or version not in self.store.restorable():
            self.report()
            return
        self.simulation.say(self, "rewinds to", version, "timeline", timeline)
        if self.simulation.bug == "volatile_rewind" and self.simulation.chance() < .5:
            self.load(version)
            self.timeline, self.revision = timeline, history[timeline][1]
            self.report()
            return
        self.store.history = history  # R16: marker and truncation in one synced write
        self.load(version)
        self.report()

    def on_snap(self, sender, timeline, version):
        if timeline == self.timeline and version > self.applied:
            self.wanted.add(version)

    def on_floor(self, sender, timeline, floor, coordinator):
        if self.pin and coordinator > self.pin[0]:
            self.pin = None  # the coordinator that asked for the pin is gone
        if timeline == self.timeline and self.owns_store():
            self.drop_below(min(floor, self.pin[1]) if self.pin else floor)  # R13

    def on_pin(self, sender, timeline, coordinator, version):
        if timeline == self.timeline and (not self.pin or coordinator >= self.pin[0]):  # R16a
            self.pin = (coordinator, version)
            self.report()

    def on_park(self, sender, timeline, history):
        """Only with the planted bug park_in_place."""
        if timeline == self.timeline:
            self.store.history, self.revision = history, history[max(history)][1]
            self.opened(self.applied)
            self.advance()

    def on_directory(self, sender, incarnations):
        for role, incarnation in incarnations.items():
            if role[0] == "W":
                self.fences[role[1]] = max(incarnation, self.fences.get(role[1], 0))
        if incarnations.get(self.role, 0) > self.incarnation:
            self.end("fenced")

    def on_shard_probe(self, sender, probe):
        self.report(probe)

    def report(self, probe=0):
        """The status. All of it is of one moment."""
        self.sequence += 1
        kept, bug = self.store, self.simulation.bug
        own = kept.restorable()
        versions, snapshots, known, end, ages = self.copies.status(own)
        if bug == "end_own":
            end = set(kept.snapshots)
        if bug == "two_halves":
            self.send("C", "half", self.number, self.incarnation, known)
        if bug == "floor_own":
            snapshots = set(kept.snapshots)
        self.send("C", "status", self.number, dict(
            incarnation=self.incarnation, sequence=self.sequence, timeline=self.timeline, history=kept.history,
            applied=self.applied, versions=versions, snapshots=snapshots,
            serves=(self.applied, self.applied - 1) if self.before is not None else (self.applied,),
            lowest_norm=self.lowest_norm() if self.simulation.job.coupled else 0,
            held={step: tuple(nodes) for step, nodes in self.steps.items() if step >= self.applied},
            pin=self.pin, probe=probe, known=known, own=own, end=end, number=self.copies.in_sync[0], ages=ages,
            lost=set(self.copies.lost)))

    def tick(self):
        self.report()
        self.copies.ship()
        self.copies.repeat_ask()
        job = self.simulation.job
        if job.coupled and self.applied in self.norms:
            self.share_norm(self.applied)
            for shard in range(job.shards):
                if shard != self.number:
                    self.send(("P", shard), "norm_request", self.timeline, self.applied)
        self.simulation.after(self.simulation.period, self.tick, self)
