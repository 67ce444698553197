"""Seeded faults of a job on four hosts: processes and agents are killed, hosts are lost with their disks or cut off in one
direction or both and healed, two hosts are cut from each other, everything dies and `dlrun resume --hosts` goes on; an
operator drains hosts and changes the number of workers meanwhile. The result must be that of an undisturbed run on one host,
and nothing may be left on any host. Where copies are kept, what was committed is not done again after the loss of fewer hosts
at once than each PS shard has stores.

The moments are steps of the job; of two faults at one step the second does not wait for what the first has caused.
"""

import contextlib
import json
import os
import signal
import time
import typing

import coordinator_losses
import net_hosts
import small_data
from dlrun_job import all_run, expect, job_over, now_us, pid_of, wait_until
from hosts_case import GONE_WITHIN_S

HOSTS = 4
EPOCHS = {"mlp_dropout": 16, "cnn_batch_norm": 8}  # a second or a few: a job is held while losses of hosts are noticed
STRUCK_BEFORE = 0.6  # of all steps
DURABILITY = ({"log": "every_step", "replicas": 1}, {"log": "snapshots", "replicas": 1},
              {"log": "every_step", "replicas": 1, "sync": "power"},
              {"log": "every_step"}, {"log": "every_step", "sync": "power"}, {"log": "snapshots"})  # durability.replicas: auto
STORES_AUTO = 2  # of each PS shard, where there are hosts enough
WORKERS, PS_SHARDS = (2, 3, 5), (1, 2, 3)
SCALED_MAX = 6
OWN_FOLDERS = ("/tmp", "/dev/shm")  # of each host
FILES = "/var/tmp"  # where the files of jobs may lie: in none of those
ORPHAN_GRACE_S = 10
GIVEN_UP_WITHIN_S = 30  # on however busy a machine
ROLES, LOSSES = ("worker", "ps_shard", "coordinator", "keeper"), ("lost", "cut", "deaf", "mute")
WISHES = ("scaled", "drained")  # of an operator
KINDS = (*ROLES, "agent", *WISHES, "parted", *LOSSES, "everything")  # also the order of those that come at once
AT_ONCE, HEALED_LATE, RESUMED, WITH_ETCD, ONE_WAY = 0.25, 0.3, 0.4, 0.25, 0.5  # shares of faults, of cuts, of runs, of runs, of cuts
KEEPERS_PER_COPY = 1000  # keeper 1001 has the second copy of PS shard 1
ANSWERS = (0, 2)  # of what an operator asks: done, or refused since it cannot be


class job_shape(typing.NamedTuple):
    """What a seed makes of a job."""

    model: str
    workers: int
    ps_shards: int
    durability: dict
    in_etcd: bool  # its journal
    is_outlived: bool  # an agent lives on when the command that started it is killed, as behind ssh

    @classmethod
    def draw(cls, source):
        return cls(source.choice(list(EPOCHS)), source.choice(WORKERS), source.choice(PS_SHARDS), source.choice(DURABILITY),
                   source.random() < WITH_ETCD, source.random() < 0.5)

    @property
    def stores(self):
        """Of each PS shard, its own among them."""
        return self.durability.get("replicas", STORES_AUTO)

    def with_stores(self, stores):
        return self._replace(durability={**self.durability, "replicas": stores})

    def plain_spec(self, data):
        return small_data.make_spec(self.model, data, epochs=EPOCHS[self.model], workers=self.workers, ps_shards=self.ps_shards)

    def spec(self, data, etcd):
        spec = {**self.plain_spec(data), "durability": self.durability}
        spec["cluster"]["orphan_grace_s"] = ORPHAN_GRACE_S
        if etcd:
            spec["cluster"]["journal"] = etcd.journal()
        return spec

    def describe(self):
        return (f"{self.model}, {self.workers} workers, {self.ps_shards} PS shards, {' '.join(f'{key} {value}' for key, value in self.durability.items())}, journal in"
                f" {'an etcd' if self.in_etcd else 'a folder'}{', agents outlive commands' if self.is_outlived else ''}")


class references:
    """What undisturbed runs on one host come to: neither durability nor journal change a bit."""

    def __init__(self, bench, data):
        self.bench, self.data, self.known = bench, data, {}

    def of(self, shape):
        spec = shape.plain_spec(self.data)
        key = json.dumps(spec)
        if key not in self.known:
            self.known[key] = self.bench.complete(spec)
        return self.known[key]


def committed_in_copies(status):
    """What every copy has, and so was committed before; None while one is not whole."""
    copies = [role for role in status["roles"] if role["role"] == "keeper"]
    if not copies or any(one["state"] != "whole" or "store" not in one for one in copies):
        return None
    return min(one["store"]["versions"][-1][-1] for one in copies)


class fault(typing.NamedTuple):
    """Of a host; `alone`: nothing else came at once."""

    kind: str
    host: str
    since_us: int
    alone: bool


def plan_faults(source, steps):
    """@returns [(step from which on, kinds that come at once)] in order of steps"""
    kinds = [source.choice(KINDS[:-1]) for _ in range(source.randint(3, 6))]
    if source.random() < RESUMED:
        kinds[source.randrange(len(kinds))] = "everything"
    groups = [[kinds[0]]]
    for kind in kinds[1:]:
        if source.random() < AT_ONCE:
            groups[-1].append(kind)
        else:
            groups.append([kind])
    moments = sorted(source.randrange(1, int(steps * STRUCK_BEFORE)) for _ in groups)
    return [(step, sorted(group, key=KINDS.index)) for step, group in zip(moments, groups)]


def ms_until_lost(job, host, since_us):
    """Milliseconds until a host is given up, or None."""
    told = [event["monotonic_us"] for event in job.events("host-lost")
            if event["host"] == host and event["monotonic_us"] >= since_us]
    return (told[0] - since_us) / 1000 if told else None


def ms_until_moved(job, host, since_us):
    """Milliseconds until the slots of all workers that were lost with a host are with others; None where there were none."""
    lost = set()
    for event in job.events():
        if event["monotonic_us"] < since_us:
            continue
        if event["event"] == "host-joined" and event["host"] == host and lost:
            break  # it may be lost again
        if event["event"] == "role-exited" and event["role"] == "worker" and f"lost with host {host}:" in event["text"]:
            lost.add((event["index"], event["incarnation"]))
    moved = [event["monotonic_us"] for event in job.events("slots-redispatched")
             if (event["index"], event["incarnation"]) in lost]
    return (max(moved) - since_us) / 1000 if moved else None


class struck_job:
    """A job on its hosts, and what is done to it."""

    def __init__(self, job, shape, hosts, listed, etcd, source):
        self.job, self.shape, self.hosts, self.listed, self.etcd, self.source = job, shape, hosts, listed, etcd, source
        self.root = hosts.names[0]
        self.held = None  # since the job was first held
        self.workers = shape.workers  # as many as are wanted
        self.cut = {}  # host -> kind, until it is healed
        self.drained = set()  # hosts, until that is undone
        self.losses = []
        self.kept = []  # (moment, step below which nothing is done again, or None where that may be) for each group of faults
        self.done = []  # (step, kinds)
        self.note_start()

    def note_start(self):
        self.started_us, self.job.is_touched = now_us(), True  # it cannot be begun anew: the hosts have its folders

    def carry_out(self, plan):
        """As far as the job goes on so long."""
        try:
            for step, kinds in plan:
                status = self.hold_at(step)
                self.heal(*self.cut)
                self.undo_drains()
                self.done.append((step, []))
                self.note_kept(kinds, status)
                self.strike_at_once(kinds, status)
        except job_over:  # it was quicker than the plan; if it failed, its end says so
            pass
        finally:
            self.let_go()

    def note_kept(self, kinds, status):
        """Each copy protects from the loss of one host, when it is whole; while a host is drained one may be on its way."""
        hosts_struck = sum(kind in (*LOSSES, "agent", "parted") for kind in kinds)
        is_protected = hosts_struck < self.shape.stores and "drained" not in kinds and all_run(status)
        self.kept.append((now_us(), committed_in_copies(status) if is_protected else None))

    def expect_kept(self):
        """No rewind below what was committed when the last faults came."""
        for event in self.job.events("rewind"):
            moments = [kept for moment, kept in self.kept if moment <= event["monotonic_us"]]
            expect(not moments or moments[-1] is None or event["step"] >= moments[-1],
                   f"steps from {event['step']} are done again, and {moments and moments[-1]} were in all copies\n{self.job.output()}")

    def hold_at(self, step):
        """@returns its status"""
        status, self.held = self.job.hold_from_step(step)
        return status

    def hold_again(self):
        """At once: on a busy machine a quick job is over before it is looked at."""
        if not self.job.send_signal(self.held.holder, signal.SIGSTOP):
            self.hold_at(0)

    def let_go(self):
        for pid in list(self.job.stopped):
            self.job.send_signal(pid, signal.SIGCONT)

    def strike_at_once(self, kinds, status):
        """The job runs then, and is held again until the losses of hosts are noticed."""
        struck = []
        if kinds[0] != "everything":
            self.let_go()
        for kind in kinds:
            if kind == "everything":
                self.hold_again()
                self.wait_until_given_up(struck)
                self.kill_everything_and_resume()
                self.hold_at(0)
            elif kind in ROLES:
                if kind == "keeper" and self.shape.stores == 1:
                    continue
                self.kill_role(kind, status)
            elif kind == "scaled":
                self.scale()
            elif kind in ("drained", "parted"):
                if not self.strike_two(kind, struck):
                    continue
            elif host := self.pick_host(struck):
                struck.append(fault(kind, host, now_us(), len(kinds) == 1))
                self.strike_host(kind, host)
            else:
                continue
            self.done[-1][1].append(kind)
        self.hold_again()
        self.wait_until_given_up(struck)
        self.losses += [one for one in struck if one.kind in LOSSES]
        # A member of the etcd is cut off with its host: it may be missed.
        self.heal(*[host for host in self.cut if self.etcd or self.source.random() >= HEALED_LATE])

    def kill_role(self, role, status):
        """By the status of a moment ago, if its process is that still: on a busy machine a new one takes its time."""
        index = self.source.randrange(self.count_of(role))
        if role == "keeper":
            index += KEEPERS_PER_COPY * self.source.randrange(self.shape.stores - 1)
        pid = pid_of(status, role, index)
        if not pid or not self.job.send_signal(pid, signal.SIGKILL):
            self.job.kill_together([(role, index)])

    def count_of(self, role):
        return {"worker": self.workers, "ps_shard": self.shape.ps_shards, "keeper": self.shape.ps_shards, "coordinator": 1}[role]

    # ---- what an operator wants

    def ask(self, *words):
        """@returns whether it is done; False where it is refused"""
        code, _, complaint = self.job.ask(*words)
        if code not in ANSWERS:
            if self.job.root.poll() is not None:
                raise job_over(complaint)
            expect(False, f"dlrun {' '.join(words)}: {code}, {complaint}")
        return code == 0

    def scale(self):
        wanted = self.source.randint(1, SCALED_MAX)
        if self.ask("scale", "--workers", str(wanted)):
            self.workers = wanted

    def undo_drains(self):
        for host in sorted(self.drained):
            self.ask("drain", host, "--undo")
        self.drained.clear()

    # ---- hosts

    def is_there(self, host):
        """As the root sees it."""
        told = [event["event"] for event in self.job.events()
                if event["event"] in ("host-joined", "host-lost") and event["host"] == host and event["monotonic_us"] >= self.started_us]
        return bool(told) and told[-1] == "host-joined"

    def pick_host(self, struck):
        """One that is there; None when there is none."""
        taken = {*self.cut, *[one.host for one in struck]}
        there = [name for name in self.hosts.names[1:] if name not in taken and self.is_there(name)]
        return self.source.choice(there) if there else None

    def strike_two(self, kind, struck):
        """Of hosts that are there. @returns whether there were such"""
        if not (host := self.pick_host(struck)):
            return False
        if kind == "drained":
            self.drained |= {host} if self.ask("drain", host) else set()
            return host in self.drained
        others = [name for name in self.hosts.names[1:] if name not in (host, *self.cut)]
        if not others:
            return False
        self.part(host, self.source.choice(others))
        return True

    def part(self, one, other):
        """One hears nothing of the other; in a half of cases the other nothing of it either. The root hears both."""
        for deaf, mute in ((one, other), (other, one))[:1 if self.source.random() < ONE_WAY else 2]:
            self.hosts.drop_from(deaf, mute)
            self.cut[deaf] = "parted"

    def strike_host(self, kind, host):
        if kind == "agent":
            self.hosts.kill_agents(host)
            return
        self.cut[host] = kind
        if kind == "lost":
            self.hosts.lose(host, spared=self.spared())
            self.hosts.folder_of(host).mkdir(parents=True)
        elif kind == "cut":
            self.hosts.set_link(host, "down")
        elif kind == "deaf":
            self.hosts.drop_from(host, self.root)
        else:
            self.drop_from_mute()

    def drop_from_mute(self):
        """The root hears nothing of them."""
        if mute := [host for host, kind in self.cut.items() if kind == "mute"]:
            self.hosts.drop_from(self.root, *mute)
        else:
            self.hosts.heal(self.root)

    def heal(self, *hosts):
        for host in hosts:
            kind = self.cut.pop(host)
            if kind in ("deaf", "parted"):
                self.hosts.heal(host)
            elif kind == "mute":
                self.drop_from_mute()
            else:
                self.hosts.set_link(host, "up")

    def wait_until_given_up(self, struck):
        for one in struck:
            wait_until(lambda one=one: ms_until_lost(self.job, one.host, one.since_us) is not None or self.job.root.poll() is not None,
                       f"host {one.host} is given up after: {one.kind}", GIVEN_UP_WITHIN_S)

    # ---- everything

    def spared(self):
        return self.etcd.pids() if self.etcd else ()

    def kill_everything_and_resume(self):
        self.heal(*self.cut)
        names = self.source.sample(self.hosts.names, len(self.hosts.names))
        pids = [pid for name in names for pid in self.hosts.processes(name) if pid not in self.spared()]
        self.let_go()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.job.wait_end()
        self.expect_nobody_left()
        self.job.resume(options=["--hosts", str(self.listed)])
        self.drained.clear()  # a new root knows of none
        self.note_start()

    def expect_nobody_left(self):
        def left():
            return {name: pids for name in self.hosts.names if (pids := set(self.hosts.processes(name)) - set(self.spared()))}

        with contextlib.suppress(AssertionError):
            wait_until(lambda: not left(), "nothing runs on any host", GONE_WITHIN_S)
        expect(not left(), f"processes are left on hosts {GONE_WITHIN_S} s after the end: {left()}")

    def expect_end(self, reference):
        """@returns the report of a job that ended as an undisturbed one, and left nothing behind"""
        report = self.job.expect_complete(may_redo=True, gone_within_s=GONE_WITHIN_S)
        for name in ("parameters_sha256", "samples_committed"):
            expect(report[name] == reference[name], f"{name} {report[name]}, undisturbed {reference[name]}\n{self.job.output()}")
        self.expect_kept()
        self.expect_nobody_left()
        left = self.hosts.left_in_own_folders()
        expect(not left, f"files are left in {' and '.join(OWN_FOLDERS)} of hosts: {left}")
        return report


class outcome(typing.NamedTuple):
    seconds: float
    done: list  # (step, kinds)
    noticed_ms: list
    moved_ms: list  # of faults that came alone
    report: dict


def run_struck(bench, shape, plan, data, reference, source):
    """One job under these faults, checked."""
    begin = time.monotonic()
    with contextlib.ExitStack() as held:
        hosts = held.enter_context(net_hosts.net_hosts(bench.folder, HOSTS, OWN_FOLDERS))
        etcd = held.enter_context(coordinator_losses.etcd_on(hosts, bench.folder)) if shape.in_etcd else None
        settings = {"start": [*net_hosts.OUTLIVED, *hosts.within("{host}")]} if shape.is_outlived else None
        listed = hosts.write_file(bench.folder / "hosts.yaml", settings)
        job = held.enter_context(hosts.start(bench, shape.spec(data, etcd), listed))
        struck = struck_job(job, shape, hosts, listed, etcd, source)
        struck.carry_out(plan)
        report = struck.expect_end(reference)
        noticed = [ms_until_lost(job, one.host, one.since_us) for one in struck.losses]
        moved = [ms_until_moved(job, one.host, one.since_us) for one in struck.losses if one.alone]
    return outcome(time.monotonic() - begin, struck.done, *[[ms for ms in all_ms if ms is not None] for all_ms in (noticed, moved)],
                   report)
