"""A worker: computes slots of the open step, keeps what it computed until that is committed, pushes it until it is applied."""

from actor import actor
from arithmetic import cover, inside


class worker(actor):
    def __init__(self, simulation, number, incarnation, host):
        super().__init__(simulation, ("W", number), incarnation, host)
        self.number, self.lease, self.lease_sequence, self.progress = number, None, (0, 0), None
        self.adopt(0, None)

    def adopt(self, timeline, revision):
        """R2: a newer timeline voids everything that this worker holds."""
        self.timeline, self.revision, self.busy = timeline, revision, None
        self.known = {}  # PS shard -> [incarnation, applied, committed]
        self.parts = {}  # PS shard -> {version: parameters}
        self.kept = {}  # (step, node) -> gradients, one a shard
        self.acknowledged, self.highest, self.evaluation_parts = set(), {}, {}

    def knows_all(self):
        return len(self.known) == self.simulation.job.shards

    def on_params(self, sender, shard, incarnation, timeline, revision, applied, committed, version, parameters):
        bug = self.simulation.bug
        if timeline > self.timeline:
            self.adopt(timeline, revision)
        elif timeline < self.timeline and bug != "no_timeline_w":
            return
        self.revision = self.revision or revision
        known = self.known.get(shard)
        if known is None or incarnation > known[0]:
            self.known[shard] = known = [incarnation, applied, committed]
            self.parts[shard] = {}
            if bug != "ack_forever":
                self.acknowledged = {one for one in self.acknowledged if one[0] != shard}
        elif incarnation < known[0]:
            return  # R3
        else:
            known[1], known[2] = max(known[1], applied), max(known[2], committed)
        self.highest[shard] = max(applied, self.highest.get(shard, 0))
        if bug == "max_version":
            known[1] = self.highest[shard]
        if version >= 0:
            self.parts[shard][version] = parameters
        self.drop()
        self.act()

    def may_forget_below(self):
        """R10: what every shard has committed (where only snapshots are durable: applied)."""
        if self.simulation.snapshots_only or self.simulation.bug == "drop_on_publish":
            return min(known[1] for known in self.known.values())
        committed = [known[2] for known in self.known.values()]
        return max(committed) if self.simulation.bug == "drop_own_commit" else min(committed)

    def drop(self):
        if not self.knows_all():
            return
        simulation, limit = self.simulation, self.may_forget_below()
        for step, node in [one for one in self.kept if one[0] < limit]:
            del self.kept[(step, node)]
            simulation.checks.forgotten(self, step)
        steps = sorted({step for step, _ in self.kept})
        if len(steps) > simulation.bound + 2:
            simulation.checks.many_kept(self.known)
            self.kept = {one: kept for one, kept in self.kept.items() if one[0] <= steps[simulation.bound + 1]}
        lowest = min(known[1] for known in self.known.values())
        for versions in self.parts.values():
            for version in [version for version in versions if version < lowest]:
                del versions[version]

    def act(self):
        """R6: the open step is the lowest version that any shard stands at; it is computed from exactly that version."""
        simulation, job = self.simulation, self.simulation.job
        if self.busy or not self.knows_all() or self.lease is None:
            return
        step = min(known[1] for known in self.known.values())
        if step >= job.steps:
            if simulation.bug == "exit_at_last":
                self.end("the job is over (bug)")
            return
        nodes = self.to_compute(step)
        if not nodes:
            return
        lacking = [shard for shard in range(job.shards) if step not in self.parts[shard]]
        if simulation.bug == "mix_versions":
            lacking = [shard for shard in range(job.shards) if not self.parts[shard]]
        if lacking:
            return
        vector = tuple(parts[step if step in parts else max(parts)] for parts in (self.parts[shard] for shard in range(job.shards)))
        self.compute(step, nodes, vector)

    def to_compute(self, step):
        simulation, slots = self.simulation, self.simulation.job.slots
        first, last = self.lease
        if simulation.idle and simulation.chance() < simulation.idle:
            first, last = 0, slots  # R5: an idle worker helps
        mine, nodes = [node for at, node in self.kept if at == step], []
        for node in cover(first, last, 0, slots):
            if any(inside(node, other) for other in mine):
                continue
            if any(inside(other, node) for other in mine) and simulation.chance() < .5:  # only what is missing, slot by slot
                singles = [(slot, slot + 1) for slot in range(*node)]
                nodes += [single for single in singles if not any(inside(single, other) for other in mine)]
            else:
                nodes.append(node)
        return [node for node in nodes if any((step, slot) not in self.revision.parked for slot in range(*node))]

    def compute(self, step, nodes, vector):
        simulation, duration = self.simulation, 0
        self.busy, self.progress = (self.timeline, step), None
        for node in nodes:
            for slot in range(*node):
                duration += 1 + 2 * simulation.chance()
                if (step, slot) in simulation.poison and (step, slot) not in self.revision.parked:
                    self.progress = (step, slot)
                    simulation.after(duration, self.poisoned, self)
                    return
        simulation.after(duration, self.computed, self, self.busy, nodes, vector)

    def poisoned(self):
        self.simulation.faults.kill(self, "poison")

    def computed(self, busy, nodes, vector):
        if self.busy is not busy:
            return
        self.busy = None
        job, step, vector = self.simulation.job, busy[1], hash(vector)
        if all(known[2] > step for known in self.known.values()):
            self.act()
            return
        for node in nodes:
            self.kept[(step, node)] = [job.gradient(shard, step, node, vector, self.revision.parked) for shard in range(job.shards)]
        self.simulation.say(self, "computes step", step, nodes)
        self.push()
        self.act()

    def push(self):
        """R9: what is kept goes to every shard until that shard has applied it."""
        for (step, node), gradients in sorted(self.kept.items()):
            for shard, known in self.known.items():
                if step < known[1] or (shard, step, node) in self.acknowledged:
                    continue
                self.send(("P", shard), "push", self.timeline, self.number, self.incarnation, step, node, gradients[shard])
                if self.simulation.bug == "ack_forever" and self.simulation.chance() < .5:
                    self.acknowledged.add((shard, step, node))

    def on_fenced(self, sender, number, incarnation):
        if incarnation > self.incarnation:
            self.end("fenced")

    def on_directory(self, sender, incarnations):
        if incarnations.get(self.role, 0) > self.incarnation:
            self.end("fenced")

    def on_lease(self, sender, sequence, incarnation, first, last):
        """R5: it never expires by itself."""
        if incarnation == self.incarnation and sequence > self.lease_sequence:
            self.lease_sequence, self.lease = sequence, (first, last)
            self.act()

    def on_worker_probe(self, sender, probe):
        self.send("C", "kept", self.number, self.incarnation, self.timeline, list(self.kept), probe)

    # ---- evaluation (R17)

    def on_evaluate(self, sender, timeline, version):
        if timeline != self.timeline or not self.knows_all():
            return
        parts = self.evaluation_parts.setdefault(version, {})
        self.evaluated(timeline, version)
        for shard in range(self.simulation.job.shards):
            if shard not in parts:
                self.send(("P", shard), "evaluation_pull", timeline, version)

    def on_evaluation_part(self, sender, shard, timeline, version, parameters):
        if timeline == self.timeline and version in self.evaluation_parts:
            self.evaluation_parts[version][shard] = parameters
            self.evaluated(timeline, version)

    def evaluated(self, timeline, version):
        parts, shards = self.evaluation_parts[version], self.simulation.job.shards
        if len(parts) == shards:
            self.send("C", "evaluated", timeline, version, tuple(parts[shard] for shard in range(shards)))

    def tick(self):
        simulation, shards = self.simulation, self.simulation.job.shards
        self.send("C", "role_beat", self.role, self.incarnation)
        step = min(known[1] for known in self.known.values()) if self.known and self.knows_all() else -1
        for shard in range(shards):
            if shard not in self.known or step not in self.parts[shard] or simulation.chance() < .3:
                self.send(("P", shard), "pull", self.timeline, step)
        self.push()
        self.act()
        simulation.after(simulation.period, self.tick, self)
