"""Roles of a job on several hosts that are killed in each phase of its life. A kill costs one restart of the role, and nobody else's.

A phase is looked for from outside, and the kill follows at once, so that a few of them come a moment after it.
"""

import collections
import contextlib
import os
import signal
import time

import net_hosts
import small_data
import worker_phases
from dlrun_job import all_run, expect, job_over, now_us, output_of, stat_fields, wait_until

PHASES = ("start", "snapshot", "evaluation", "fill", "promotion", "resume")
ROLES = ("worker", "ps_shard", "coordinator", "keeper")
HOSTS, WORKERS, PS_SHARDS = 3, 3, 2
ORPHAN_GRACE_S = 10
START_S, PROMOTED_S = 0.15, 0.4  # within which a kill comes after the begin of a start, after a host is given up
FIND_S, LOOK_S = 20, 0.001
GIVEN_UP_WITHIN_S, GONE_WITHIN_S, SETTLED_WITHIN_S = 30, 30, 60


def make_spec(train, validation, *, epochs, log):
    """A job with every phase in it again and again; it has copies, as every job of several hosts."""
    spec = small_data.make_spec("mlp_dropout", train, epochs=epochs, workers=WORKERS, ps_shards=PS_SHARDS)
    spec["model"]["layers"][1] = {"linear": {"out_features": worker_phases.HIDDEN}}
    spec["data"]["validation"] = validation
    spec["train"]["evaluate_every"] = "40 steps"
    spec["cluster"].update(orphan_grace_s=ORPHAN_GRACE_S, restart={"intensity": 1000, "period_s": 60})
    spec["durability"] = {"log": log, "max_recovery": "10ms"}
    return spec


def is_settled(status):
    """All run, and all copies are whole."""
    return all_run(status) and all(one["state"] == "whole" for one in status["roles"] if one["role"] == "keeper")


class struck_phases:
    """A running job whose roles are killed. Calls end with job_over when the job does."""

    def __init__(self, job, hosts, listed, source):
        self.job, self.hosts, self.listed, self.source = job, hosts, listed, source
        self.phases = set(PHASES)  # that still come in this job
        # (role, index), processes, hosts: of the phase that is being hit
        self.killed, self.pids, self.lost = collections.Counter(), [], []
        self.restart_ms = []  # from a kill until all was as before

    def hit(self, phase, role):
        """@returns whether a role of this kind was killed then"""
        self.settle()
        since, self.killed, self.pids, self.lost = now_us(), collections.Counter(), [], []
        is_hit = getattr(self, f"in_{phase}")(role)
        self.wait_until(lambda: not any(map(self.job.is_ours, self.pids)), "who was killed is gone", SETTLED_WITHIN_S)
        self.settle()
        self.expect_one_restart_each(phase, self.told_since(since), since)
        if is_hit:
            self.restart_ms.append((now_us() - since) / 1000)
        return is_hit

    # ---- phases

    def in_start(self, role):
        """It is killed once, and again a moment after its process is there."""
        index, pid = self.kill(role)
        started = self.wait_for_start(role, index, pid)
        time.sleep(self.source.uniform(0, START_S))
        return self.kill_process(role, index, started)

    def in_snapshot(self, role):
        folders = [run / f"ps_shard-{index}" / "snapshots" for run in self.hosts.run_folders(self.job.run_dir) for index in range(PS_SHARDS)]
        return self.seen(lambda: any(folder.is_dir() and worker_phases.is_written(folder) for folder in folders)) and bool(self.kill(role))

    def in_evaluation(self, role):
        pids = [one["pid"] for one in self.roles("worker")]

        def evaluates():
            with contextlib.suppress(OSError):
                return any(map(worker_phases.evaluates, pids))
            return False

        return self.seen(evaluates) and bool(self.kill(role))

    def in_fill(self, role):
        """A copy is killed, and a role while another copy is filled."""
        index, pid = self.kill("keeper")
        started = self.wait_for_start("keeper", index, pid)
        return self.kill_process(role, index, started) if role == "keeper" else bool(self.kill(role))

    def in_promotion(self, role):
        """A host with a PS shard is cut off; a role elsewhere is killed while the copy becomes the PS shard."""
        shards = {one["pid"] for one in self.roles("ps_shard")}
        hosts = [name for name in self.hosts.names[1:] if shards & set(self.hosts.processes(name))]
        if not hosts:  # all PS shards are with the root, whose host stays
            self.phases.remove("promotion")
            return False
        host, since = self.source.choice(hosts), now_us()
        self.lost.append(host)
        self.hosts.set_link(host, "down")
        try:
            self.wait_until(lambda: any(event["host"] == host and event["monotonic_us"] >= since for event in self.job.events("host-lost")),
                            f"{host} is given up", GIVEN_UP_WITHIN_S)
            time.sleep(self.source.uniform(0, PROMOTED_S))
            return bool(self.kill(role, but=set(self.hosts.processes(host))))
        finally:
            self.hosts.set_link(host, "up")

    def in_resume(self, role):
        """Everything is killed; a role is when the run is resumed, while all start."""
        self.hosts.kill_all(*self.hosts.names)
        self.job.wait_end()
        wait_until(lambda: not any(map(self.hosts.processes, self.hosts.names)), "nothing runs on any host", GONE_WITHIN_S)
        if (self.job.run_dir / "report.json").exists():
            raise job_over("it was over before")
        self.job.resume(options=["--hosts", str(self.listed)])
        self.job.is_touched = True
        started = self.wait_for_start(role, 0, None)
        time.sleep(self.source.uniform(0, START_S))
        return self.kill_process(role, 0, started)

    # ---- who is killed

    def roles(self, kind, but=()):
        """Those that have a process, as the root says."""
        status = self.job.wait_for(lambda status: True, "it answers")
        return [one for one in status["roles"] if one["role"] == kind and one["pid"] and one["pid"] not in but]

    def kill(self, role, but=()):
        """One of them. @param but processes that are none of its own @returns (index, process)"""
        def killed():
            for one in self.source.sample(found, len(found)) if (found := self.roles(role, but)) else ():
                if self.kill_process(role, one["index"], one["pid"]):
                    return one["index"], one["pid"]
            return None

        return self.wait_until(killed, f"there is a {role} to be killed", SETTLED_WITHIN_S)

    def kill_process(self, role, index, pid):
        """@returns whether it was there"""
        if not self.job.send_signal(pid, signal.SIGKILL):
            return False
        self.killed[role, index] += 1
        self.pids.append(pid)
        return True

    # ---- waiting

    def wait_for_start(self, role, index, pid):
        """@returns the process of the role that is there next, after `pid`; `status` would tell it too late"""
        return self.wait_until(lambda: next((one for one in self.processes(role, index) if one != pid), None), f"{role} {index} starts",
                               SETTLED_WITHIN_S)

    def processes(self, role, index):
        """By where they write. From now on they are known for some of the job's, also on other hosts."""
        logs = {str(run / "logs" / f"{role}-{index}.log") for run in self.hosts.run_folders(self.job.run_dir)}
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            fields = stat_fields(pid)
            if fields and fields["state"] not in "ZX" and logs & set(output_of(pid)):
                self.job.seen.setdefault(pid, fields["start"])
                found.append(pid)
        return found

    def settle(self):
        """Also: nobody has ended who is not told to have."""
        self.job.wait_for(lambda status: is_settled(status) and all(self.job.is_ours(one["pid"]) for one in status["roles"]),
                          "all run and all copies are whole", SETTLED_WITHIN_S)

    def seen(self, condition):
        end = time.monotonic() + FIND_S
        while time.monotonic() < end:
            if condition():
                return True
            self.expect_not_over()
            time.sleep(LOOK_S)
        return False

    def wait_until(self, condition, what, patience_s):
        def holds():
            self.expect_not_over()
            return condition()

        return wait_until(holds, what, patience_s, poll_s=LOOK_S)

    def expect_not_over(self):
        if self.job.root.poll() is not None:
            raise job_over(f"the job ended with {self.job.root.returncode}\n{self.job.output()}")

    # ---- what came of it

    def told_since(self, moment_us):
        return [event for event in self.job.events() if event["monotonic_us"] >= moment_us]

    def ends(self, events):
        """(role, index) -> how often it ended, but with a host that was lost."""
        return collections.Counter((event["role"], event["index"]) for event in events if event["event"] in ("role-exited", "keeper-left")
                                   and not any(f"lost with host {host}" in event["text"] for host in self.lost))

    def expect_one_restart_each(self, phase, events, since):
        """Nobody ended but who was killed, as often as it was, or was on a host that was lost."""
        ends = self.ends(events)
        if self.lost:  # a copy ends where it becomes the PS shard
            ends = collections.Counter({name: count for name, count in ends.items() if name[0] != "keeper"})
        told = "\n".join(f"{event['monotonic_us'] - since} {event['event']} {event['role']} {event['index']}: {event['text']}" for event in events)
        expect(ends <= self.killed, f"in {phase} {dict(self.killed)} were killed, and {dict(ends)} ended\n{told}")
        hung = [event["event"] for event in events if event["event"] in ("role-hung", "copy-silent")]
        expect(not hung, f"in {phase}: {hung}\n{told}")


def run_one(bench, spec, reference, pairs, source, spares_root=False):
    """One job, as long as it lasts. @param pairs gives the next (phase, role), or None; is told of each that was hit
    @param spares_root the root's host has no roles while others can, of which there are three: PS shards never stay there
    @returns the report, and milliseconds until all was as before"""
    with net_hosts.net_hosts(bench.new_run_dir(), HOSTS + spares_root) as hosts:
        listed = hosts.write_file(hosts.folder / "hosts.yaml", **({hosts.names[0]: {"cpus": 0}} if spares_root else {}))
        with hosts.start(bench, spec, listed) as job:
            struck = struck_phases(job, hosts, listed, source)
            with contextlib.suppress(job_over):
                while pair := pairs.next(struck.phases):
                    pairs.note(pair, struck.hit(*pair))
            report = job.expect_complete(may_redo=True, gone_within_s=GONE_WITHIN_S, patience_s=1800)
            for name in ("parameters_sha256", "evaluations", "samples_committed"):
                expect(report[name] == reference[name], f"{name}: {report[name]}, undisturbed {reference[name]}")
    return report, struck.restart_ms


class plan:
    """Which role is killed in which phase next: the pair with the fewest kills so far."""

    def __init__(self, times, source, phases=PHASES, roles=ROLES):
        self.times, self.source = times, source
        self.found = collections.Counter({(phase, role): 0 for phase in phases for role in roles})
        self.tried = collections.Counter(self.found)

    def open_pairs(self):
        return [pair for pair, count in self.found.items() if count < self.times]

    def next(self, phases):
        """In one of `phases`; or None, when each pair there had its kills."""
        if not (left := [pair for pair in self.open_pairs() if pair[0] in phases]):
            return None
        self.source.shuffle(left)
        return min(left, key=lambda one: self.tried[one])

    def note(self, pair, is_hit):
        self.tried[pair] += 1
        self.found[pair] += is_hit
