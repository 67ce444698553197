"""Where training stands: what shards report, going back (R14-R16a, R26), floors (R13, R27), evaluations, the end (R19).

Part of the coordinator. A shard's status is of one moment. What is concluded from several of them holds although they are of
different moments: versions only grow within a start, and a rewind goes to what the counted stores of the journaled sets have.
"""

from actor import deposed, violation
from arithmetic import revision
from stores import lowest_branch, with_entry


class course:
    def __init__(self, coordinator):
        self.coordinator, self.simulation = coordinator, coordinator.simulation
        self.statuses = {}  # PS shard -> its newest
        self.halves = {}  # only with the planted bug two_halves
        self.probe, self.probes, self.back, self.snapshot_at = None, 0, None, self.simulation.now
        coordinator.on_status, coordinator.on_half = self.on_status, self.on_half
        coordinator.on_kept, coordinator.on_evaluated = self.on_kept, self.on_evaluated

    @property
    def journal(self):
        return self.coordinator.journal

    def send_all(self, *message):
        for shard in range(self.simulation.job.shards):
            self.coordinator.send(("P", shard), *message)

    # ---- what shards say

    def on_half(self, sender, shard, incarnation, known):
        if self.journal.incarnations.get(("P", shard)) == incarnation:
            self.halves[shard] = known

    def on_status(self, sender, shard, status):
        coordinator, role = self.coordinator, ("P", shard)
        if self.journal.incarnations.get(role) != status["incarnation"]:
            return
        coordinator.role_heard[role] = max(coordinator.role_heard[role], self.simulation.now)
        before = self.statuses.get(shard)
        if before and (before["incarnation"], before["sequence"]) > (status["incarnation"], status["sequence"]):
            return
        if status["timeline"] > self.journal.timeline and not self.journal.lost:
            if coordinator.has_term() and self.simulation.bug != "late_journal":
                raise violation(f"R15: shard {shard} is on a timeline that is not in the journal")
            raise deposed
        self.statuses[shard] = status
        coordinator.gone |= status["lost"]
        if self.probe and self.probe["phase"] == 2 and status["probe"] == self.probe["id"]:
            self.probe["waits_for"].discard(shard)
            if not self.probe["waits_for"]:
                self.decide()

    def forget(self, shard):
        self.statuses.pop(shard, None)
        self.halves.pop(shard, None)

    def all_reported(self):
        return len(self.statuses) == self.simulation.job.shards

    def settled(self):
        """R26: all counted stores are known, by the reports that say what they can restore, and of the sets that are journaled."""
        if not self.all_reported():
            return False
        bug = self.simulation.bug
        for shard, status in self.statuses.items():
            known = self.halves.get(shard) if bug == "two_halves" else status["known"]
            if not known or status["number"] != self.journal.sets[shard][0] and bug != "old_set":
                return False
        return True

    def branch_after(self, timeline):
        branch = lowest_branch(self.journal.history, timeline, self.journal.timeline)
        return 10**9 if branch is None else branch

    def common(self):
        """R14: the versions that all counted stores of all shards can restore, of the newest timeline."""
        shared = None
        for shard in range(self.simulation.job.shards):
            status = self.statuses[shard]
            versions = {version for version in status["versions"] if version <= self.branch_after(status["timeline"])}
            shared = versions if shared is None else shared & versions
        return shared

    # ---- going back

    def rewind(self, version, why, salts=None, parked=None, jump=1):
        """R15, R16: journaled, then sent."""
        simulation, journal = self.simulation, self.journal
        timeline, now = journal.timeline + jump, journal.revision
        trained = revision(now.salts if salts is None else salts, now.parked if parked is None else parked)
        simulation.say(self.coordinator, "REWIND to", version, "timeline", timeline, why)
        self.probe = self.back = None
        history = with_entry(journal.history, timeline, (version, trained))
        if simulation.bug == "late_journal":
            self.send_all("rewind", timeline, version, history)
            simulation.revisions.setdefault(timeline, trained)
            if simulation.chance() < .3:
                simulation.faults.kill(self.coordinator, "between send and journal")
                return
        valid = {at: result for at, result in journal.evaluations.items() if at <= version}  # those above the branch are void
        if not self.coordinator.write(history=history, evaluations=valid, lost=False):
            return
        simulation.count["steps redone"] += max(status["applied"] for status in self.statuses.values()) - version
        simulation.checks.rewound(timeline, version, why, history, self.statuses)
        if simulation.bug != "late_journal":
            self.send_all("rewind", timeline, version, history)

    def find_stuck(self):
        """R14: (shard, step) pairs that cannot be computed again, and those whose norm nobody can give."""
        newest = max(status["applied"] for status in self.statuses.values())
        gradients, norms = set(), set()
        for shard, status in self.statuses.items():
            for step in range(status["applied"], newest):
                for other in self.statuses.values():
                    if other["applied"] > step and step not in other["serves"]:
                        gradients.add((shard, step))
                    if self.simulation.job.coupled and other["applied"] > step and other["lowest_norm"] > step:
                        norms.add((shard, step))
        return gradients, norms

    def look_for_losses(self):
        gradients, norms = self.find_stuck()
        if (gradients or norms) and not self.probe:
            self.probes += 1
            workers = {role for role in self.simulation.roles if role[0] == "W"}
            self.probe = dict(id=(self.coordinator.incarnation, self.probes), phase=1, gradients=gradients, norms=norms,
                              waits_for=workers, kept=[])
        self.continue_probe()

    def continue_probe(self):
        """Workers first, shards after: so nothing is called lost that is not."""
        probe = self.probe
        if not probe:
            return
        if probe["phase"] == 1:
            probe["waits_for"] = {role for role in probe["waits_for"] if self.coordinator.is_live(role)}
            if not probe["waits_for"]:
                probe["phase"], probe["waits_for"] = 2, set(range(self.simulation.job.shards))
        for one in sorted(probe["waits_for"], key=str):
            if probe["phase"] == 1:
                self.coordinator.send(one, "worker_probe", probe["id"])
            else:
                self.coordinator.send(("P", one), "shard_probe", probe["id"])

    def on_kept(self, sender, worker, incarnation, timeline, kept, probe_id):
        probe = self.probe
        if (probe and probe["phase"] == 1 and probe_id == probe["id"]
                and self.journal.incarnations.get(("W", worker)) == incarnation):
            if timeline == self.journal.timeline:
                probe["kept"] += kept
            probe["waits_for"].discard(("W", worker))
            self.continue_probe()

    def decide(self):
        """What was stuck before the workers were asked and still is, and lacks a slot that nobody holds, is lost."""
        probe, self.probe = self.probe, None
        if not self.all_reported() or any(status["timeline"] != self.journal.timeline for status in self.statuses.values()):
            return
        gradients, norms = self.find_stuck()
        lost = bool(norms & probe["norms"])
        for shard, step in gradients & probe["gradients"]:
            nodes = [node for at, node in probe["kept"] if at == step] + list(self.statuses[shard]["held"].get(step, ()))
            nodes += [(slot, slot + 1) for at, slot in self.journal.revision.parked if at == step]
            if any(not any(begin <= slot < end for begin, end in nodes) for slot in range(self.simulation.job.slots)):
                lost = True
        if lost and self.settled():
            self.rewind(max(self.common()), "lost")

    def park(self, slot):
        """R18"""
        simulation, journal = self.simulation, self.journal
        if slot in journal.parked or not self.all_reported():
            return
        if not self.coordinator.write(parked=journal.parked | {slot}):
            return
        simulation.say(self.coordinator, "parks", slot)
        if simulation.bug == "park_in_place":
            trained = revision(journal.revision.salts, journal.parked)
            simulation.revisions[journal.timeline] = trained
            simulation.job.undisturbed.clear()
            entry = (journal.history[journal.timeline][0], trained)
            self.coordinator.write(history=with_entry(journal.history, journal.timeline, entry))
            self.send_all("park", self.journal.timeline, self.journal.history)

    # ---- what it does again and again

    def look(self, workers):
        if not self.all_reported():
            return
        if self.journal.lost:
            self.recover()
            return
        if self.bring_up() or self.go_back_on_purpose():
            return
        if self.simulation.bug != "no_probe":
            self.look_for_losses()
        self.name_snapshots_and_floor(workers)

    def recover(self):
        """R20: all shards are heard; the history of the highest timeline is the newest that there is."""
        if self.settled():
            history = max((status["history"] for status in self.statuses.values()), key=max)
            if self.coordinator.write(history=history, parked=history[max(history)][1].parked):
                self.rewind(max(self.common()), "journal lost", jump=1000)

    def bring_up(self):
        """R16: who slept over timelines goes to the lowest branch; who cannot, takes all back. @returns whether anybody is behind"""
        behind = [shard for shard, status in self.statuses.items() if status["timeline"] < self.journal.timeline]
        for shard in behind:
            branch = self.branch_after(self.statuses[shard]["timeline"])
            if branch in self.statuses[shard]["own"]:
                self.coordinator.send(("P", shard), "rewind", self.journal.timeline, branch, self.journal.history)
            elif self.settled():
                self.rewind(max(self.common()), "cannot")
                break
        return bool(behind)

    def go_back_on_purpose(self):
        """R18, R16a: for a parked slot, or because the operator wants to. @returns whether nothing else is to be done now"""
        simulation, journal = self.simulation, self.journal
        to_park = journal.parked - journal.revision.parked
        if not self.settled() and (to_park or simulation.undo):
            return True
        if to_park and simulation.bug != "park_in_place":
            limit = min(step for step, _ in to_park)
            self.rewind(max(version for version in self.common() if version <= limit), "parked", parked=journal.parked)
            return True
        if simulation.undo and simulation.chance() < simulation.undo and simulation.now < simulation.calm:
            simulation.undo = 0 if simulation.chance() < .5 else simulation.undo
            simulation.faults.operator = True
            self.back = simulation.random.choice(sorted(self.common()))
        return self.back is not None and self.go_back_when_pinned()

    def go_back_when_pinned(self):
        simulation, journal, version = self.simulation, self.journal, self.back
        pinned = all(status["pin"] == (self.coordinator.incarnation, version) for status in self.statuses.values())
        if not pinned or not self.settled():
            self.send_all("pin", journal.timeline, self.coordinator.incarnation, version)
            return False
        self.back = None
        if version not in self.common():
            return False
        salts = journal.revision.salts[:version] + (journal.timeline + 1,) * (simulation.job.steps - version)
        self.rewind(version, "undo", salts=salts)
        return True

    def name_snapshots_and_floor(self, workers):
        simulation, journal, coordinator = self.simulation, self.journal, self.coordinator
        snapshots = set.intersection(*(status["snapshots"] for status in self.statuses.values()))
        if simulation.now >= self.snapshot_at:
            self.snapshot_at = simulation.now + simulation.snapshot_every
            newest = max(status["applied"] for status in self.statuses.values())
            self.send_all("snap", journal.timeline, newest + 1 + int(simulation.chance() * 2))
        awaited = [version for version in simulation.to_evaluate if version not in journal.evaluations]
        floors = sorted(snapshots)[-2:-1]  # R13: the second newest common snapshot,
        if awaited:  # and not above what is still to be evaluated
            floors = [max([snapshot for snapshot in snapshots if snapshot <= limit] or [0]) for limit in floors + awaited]
        if floors:
            self.send_all("floor", journal.timeline, min(floors), coordinator.incarnation)
            simulation.checks.floor_named(journal.timeline, min(floors), self.statuses)
        for version in awaited:
            if version in snapshots and workers:
                coordinator.send(simulation.random.choice(workers), "evaluate", journal.timeline, version)
        if not awaited and self.back is None and self.is_over(snapshots) and coordinator.write(done=True):
            simulation.checks.job_over()

    def is_over(self, snapshots):
        """R19, R27: every member of every set has the last snapshot, on the newest timeline."""
        job, bug = self.simulation.job, self.simulation.bug
        if not all(job.steps in status["end"] for status in self.statuses.values()):
            return False
        return bug == "end_own" or job.steps in snapshots and self.settled()

    def on_evaluated(self, sender, timeline, version, result):
        journal = self.journal
        if timeline == journal.timeline and version not in journal.evaluations:
            self.simulation.say(self.coordinator, "evaluated", version)
            self.coordinator.write(evaluations=with_entry(journal.evaluations, version, result))
