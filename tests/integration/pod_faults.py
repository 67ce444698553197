"""Seeded faults of a job on pods: what Kubernetes and its nodes do to pods, and what befalls Kubernetes itself. Pods are played on four
nodes (small_cluster). The result must be that of an undisturbed run on one host, and no pod and no process may be left.

A fault that comes alone is waited for: what it is to cause happens, and the job trains again on all its pods. Of faults that come at once
the second does not wait for what the first has caused.
"""

import contextlib
import os
import random
import signal
import threading
import time
import typing

import net_hosts
import paused_runs
import small_cluster
import small_data
from api_objects import refusal
from dlrun_job import output_of
from etcd_members import etcd_members
from pod_jobs import NAME, cluster_api, job_on_pods, players_of
from pod_nodes import NODES
from waiting import expect, wait_until

ADDRESSES = 16  # of pods, and of the API server
EPOCHS = 8  # of 63 steps
SLOT_S = 0.3  # the job takes minutes, unless it is let go
WORKERS, PS_SHARDS, POD_HOSTS = (2, 3, 5), (1, 2, 3), (2, 3)
DURABILITY = ({"log": "every_step"}, {"log": "snapshots"}, {"log": "every_step", "replicas": 1})  # else durability.replicas: auto
ORPHAN_GRACE_S = 20  # hosts that no successor calls wait so long for one, and then join it anew
MEMORY_MAX = "64Gi"
OF_CONTAINERS = ("killed", "failed", "oom", "oom_twice", "looping", "role")
OF_PODS = ("deleted", "evicted", "no_room", "pending", "image")
OF_NODES = ("drained", "node_gone", "policy")
OF_CONTROL = ("leader", "control_deleted", "control_node_gone", "suspended")
OF_API = ("api_away", "compacted")
KINDS = (*OF_CONTAINERS, *OF_PODS, *OF_NODES, *OF_CONTROL, *OF_API)  # also the order of those that come at once
NONE_CAN_COME = ("pending", "image")  # but these are last: others need a pod that runs
AT_ONCE, IMAGE_LATE, IN_ETCD, IN_GROUPS = 0.25, 0.2, 0.3, 0.25  # shares of faults, of runs, of those with copies, of shapes of runs
PS_HOSTS = 2
AWAY_S = (1, 6)
MOMENT_S = 1.0  # a fault comes at most so long after the job has recovered from the one before
# The first process of a container ignores a SIGTERM that comes before it has a handler: then
# SIGKILL ends it, after the grace of its pod (45 s).
GONE_WITHIN_S = 60
QUOTA = refusal(403, 'pods "x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3', "Forbidden")


class pod_shape(typing.NamedTuple):
    """What a seed makes of a job."""

    workers: int
    ps_shards: int
    pod_hosts: int
    durability: dict
    image_late: bool  # the first pods cannot have their image for a while
    in_etcd: bool = False  # its journal: then no claim has the run folder, which goes with each control pod
    ps_hosts: int = 0  # pods for PS shards, beside the others

    @classmethod
    def draw(cls, source):
        made = cls(source.choice(WORKERS), source.choice(PS_SHARDS), source.choice(POD_HOSTS), source.choice(DURABILITY),
                   source.random() < IMAGE_LATE)
        made = made._replace(in_etcd=source.random() < IN_ETCD and made.durability.get("replicas") != 1)
        has_groups = random.Random(repr(made)).random() < IN_GROUPS  # no draw of the source: a seed keeps its faults
        return made._replace(ps_hosts=PS_HOSTS if has_groups else 0)

    def plain_spec(self, data):
        spec = small_data.make_spec("mlp_dropout", data, epochs=EPOCHS, workers=self.workers, ps_shards=self.ps_shards)
        return paused_runs.with_pauses(spec)

    def spec(self, data):
        spec = {**self.plain_spec(data), "durability": self.durability}
        spec["cluster"]["orphan_grace_s"] = ORPHAN_GRACE_S
        return spec

    def describe(self):
        durability = " ".join(f"{key} {value}" for key, value in self.durability.items())
        late = (", image late" if self.image_late else "") + (", journal in an etcd" if self.in_etcd else "")
        groups = f" and {self.ps_hosts} for PS shards" if self.ps_hosts else ""
        return f"{self.workers} workers, {self.ps_shards} PS shards, {self.pod_hosts} pods of hosts{groups}, {durability}{late}"


def plan_faults(source):
    """@returns [kinds that come at once]"""
    groups = [[source.choice(KINDS)]]
    for _ in range(source.randint(2, 4)):
        kind = source.choice(KINDS)
        if source.random() < AT_ONCE and kind not in groups[-1]:
            groups[-1].append(kind)
        else:
            groups.append([kind])
    return [sorted(group, key=lambda kind: (kind in NONE_CAN_COME, KINDS.index(kind))) for group in groups]


class struck_pods(job_on_pods):
    """A job on its pods, and what is done to it. A method for each kind does it, and gives what tells that it had its effect."""

    def __init__(self, bench, data, shape, parts, source, etcd=None):
        """@param parts hosts, cluster, api, pauses"""
        self.bench, self.program, self.data, self.shape, self.source = bench, bench.program, data, shape, source
        self.hosts, self.cluster, self.api, self.pauses = parts
        self.nodes, self.pod_hosts, self.ps_hosts, self.etcd = self.cluster.nodes, shape.pod_hosts, shape.ps_hosts, etcd
        if etcd:
            self.claims = ("--model-claim", "models")
        self.parted, self.threads, self.struck = set(), [], []
        self.recovered_s = []  # (kinds, seconds until it trained again)

    def begin(self):
        if self.shape.image_late:
            self.nodes.spoil_image()
        spec = self.shape.spec(self.data)
        if self.etcd:
            spec["cluster"]["journal"] = self.etcd.journal()
        self.cluster.apply(self.manifests(spec, "--memory-max", MEMORY_MAX))
        self.cluster.start(NAME)
        if self.shape.image_late:
            wait_until(lambda: len(self.nodes.waiting) == self.pod_hosts + self.ps_hosts, "all pods of hosts wait for their image")
            self.nodes.mend_image()
        self.wait_until_trains()

    def carry_out(self, plan):
        for kinds in plan:
            time.sleep(self.source.uniform(0, MOMENT_S))  # the moment is the seed's
            step, begin, self.struck = self.status().get("step", 0), time.monotonic(), []
            signs = [getattr(self, kind)() for kind in kinds]
            if len(kinds) == 1:
                wait_until(signs[0], f"{kinds[0]} has its effect")
            self.mend()
            self.wait_until_trains(beyond=0 if self.etcd and len(kinds) > 1 else step)  # both copies of a PS shard may be lost
            for one in self.threads:
                one.join()
            self.threads.clear()
            self.recovered_s.append((kinds, time.monotonic() - begin))

    def mend(self):
        """What is mended by somebody else than the job."""
        if self.api.is_stopped:
            self.api.come_back()
        for host in list(self.parted):
            self.parted.discard(host)
            self.hosts.heal(host)
        for node in list(self.nodes.lost):
            self.nodes.replace(node)
        self.nodes.mend_image()
        self.nodes.uncordon(*list(self.nodes.cordoned))

    # ---- whom, and whether it had its effect

    def victim(self):
        """A pod of a host that runs, and to which nothing was done just now."""
        def find():
            there = [one for one in self.pods_of_hosts() if one.main_process() and one not in self.struck and not one.is_deleted]
            return there or None

        found = self.source.choice(wait_until(find, "a pod of a host runs"))
        self.struck.append(found)
        return found

    def joined(self, *pods):
        """@returns what tells whether all their hosts have joined again"""
        before = {one.host_name: self.times_joined(one.host_name) for one in pods}
        return lambda: all(self.times_joined(host) > times for host, times in before.items())

    def times_joined(self, host):
        return sum(event["host"] == host for event in self.events("host-joined"))

    def beside(self, call, *words):
        thread = threading.Thread(target=call, args=words, daemon=True)
        thread.start()
        self.threads.append(thread)

    def goes_on(self):
        step = self.status().get("step", 0)
        return lambda: self.status().get("step", 0) > step

    # ---- containers

    def killed(self, *how):
        one = self.victim()
        sign = self.joined(one)
        one.kill_container(*how)
        return sign

    def failed(self):
        return self.killed("Error", 134)

    def oom(self):
        return self.killed("OOMKilled")

    def oom_twice(self):
        one = self.victim()
        sign = self.joined(one)
        restarts = one.restarts
        one.kill_container("OOMKilled")
        wait_until(lambda: one.restarts > restarts, f"{one.name} is started again")
        sign_of_more = self.joined(one)
        one.kill_container("OOMKilled")
        return lambda: sign() and sign_of_more()

    def looping(self):
        """Its container ends whenever it is started, until another pod comes."""
        one, made = self.victim(), self.made_pods()
        sign = self.joined(one)
        self.beside(self.keep_ending, one, made)
        return sign

    def keep_ending(self, one, made):
        def is_replaced():
            process = one.main_process()
            if process and one.phase == "Running":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            return one.is_deleted or one.phase != "Running" or any(name.startswith(one.host_name) for name in self.made_pods() - made)

        wait_until(is_replaced, f"{one.name} is replaced")

    def role(self):
        """The process of a role in a pod of a host."""
        one, goes_on = self.victim(), self.goes_on()
        roles = [pid for pid in self.hosts.processes(one.host) if any(f"/{role}-" in file for file in output_of(pid) for role in ("worker", "ps_shard", "keeper"))]
        if roles:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.source.choice(roles), signal.SIGKILL)
        return goes_on

    # ---- pods

    def deleted(self, one=None):
        one = one or self.victim()
        sign = self.joined(one)
        self.beside(one.delete)
        return sign

    def evicted(self):
        one = self.victim()
        sign = self.joined(one)
        self.beside(one.evict)
        return sign

    def no_room(self):
        """A quota lets no pod be made for a while."""
        self.api.refuse("create pods", QUOTA, times=2)
        return self.deleted()

    def pending(self):
        """No node takes the next pod, for a while."""
        one = self.victim()  # before: it may be one that is yet to be placed
        self.nodes.cordon(*range(NODES))
        self.deleted(one)
        return self.waits_while_it_trains()

    def image(self):
        """The next pod has no image, for a while: others of that image ran."""
        one = self.victim()
        self.nodes.spoil_image()
        self.deleted(one)
        return self.waits_while_it_trains()

    def waits_while_it_trains(self):
        goes_on = self.goes_on()
        return lambda: self.nodes.waiting and goes_on()

    # ---- nodes

    def node_to_strike(self):
        """One with a pod of a host, and without the control pod. @returns it, and its pods"""
        def find():
            control = self.control_pod()
            return control and sorted({one.node for one in stay()} - {control.node})

        def stay():  # a pod that was deleted may still run: another one is its host by now
            return [one for one in self.pods_of_hosts() if not one.is_deleted and "deletionTimestamp" not in one.object["metadata"]]

        node = self.source.choice(wait_until(find, "a pod of a host is on a node without the control pod"))
        going = [one for one in stay() if one.node == node]
        self.struck += going
        return node, going

    def drained(self):
        node, going = self.node_to_strike()
        sign = self.joined(*going)
        self.beside(self.nodes.drain, node)
        return sign

    def node_gone(self):
        node, going = self.node_to_strike()
        sign = self.joined(*going)
        self.nodes.lose(node)
        return sign

    def policy(self):
        """A network policy cuts the pod off."""
        one = self.victim()
        sign = self.joined(one)
        self.parted.add(one.host)
        self.hosts.part_from_all(one.host)
        return sign

    # ---- the control pod

    def leader(self):
        control = wait_until(self.control_pod, "the control pod is there")
        ends = len(control.exit_codes)
        control.kill_container()
        return lambda: len(control.exit_codes) > ends

    def control_deleted(self):
        control = wait_until(self.control_pod, "the control pod is there")
        self.beside(control.delete)
        return lambda: self.control_pod() not in (None, control)

    def control_node_gone(self):
        """Somebody deletes the node thereupon: Kubernetes does nothing before, but where control pods may overlap."""
        control = wait_until(self.control_pod, "the control pod is there")
        node = control.node
        self.nodes.lose(node)
        if self.etcd:
            self.nodes.evict(node)
        else:
            self.nodes.replace(node)
        return lambda: self.control_pod() not in (None, control)

    def suspended(self):
        """The Job, and released when nothing of the control pod runs any more."""
        control = wait_until(self.control_pod, "the control pod is there")
        self.suspend()
        wait_until(lambda: control.phase != "Running", "the control pod ends")
        self.suspend(False)
        return lambda: self.control_pod() not in (None, control)

    # ---- the API server

    def api_away(self):
        """A container ends meanwhile, and is started again nevertheless."""
        one = self.victim()  # after a suspension it is the API server that brings one
        joined, goes_on = self.joined(one), self.goes_on()
        self.api.stop()
        back_at = time.monotonic() + self.source.uniform(*AWAY_S)
        one.kill_container()
        return lambda: time.monotonic() >= back_at and joined() and goes_on()

    def compacted(self):
        asked = len(self.api.asked)
        self.api.compact()
        return lambda: "list pods" in self.api.asked[asked:]

    # ---- its end

    def expect_end(self, reference):
        report = self.wait_for_end(reference)

        spared = self.etcd.pids() if self.etcd else set()

        def left():
            return {name: pids for name in self.hosts.names if (pids := set(self.hosts.processes(name)) - spared)}

        with contextlib.suppress(AssertionError):
            wait_until(lambda: not left(), "nothing runs at any address", GONE_WITHIN_S)
        expect(not left(), f"processes are left {GONE_WITHIN_S} s after the end: {left()}")
        running = [one.name for one in self.cluster.pods if one.phase == "Running"]
        expect(not running, f"pods are left: {running}")
        return report


class outcome(typing.NamedTuple):
    seconds: float
    recovered_s: list  # (kinds, seconds until it trained again)
    report: dict


@contextlib.contextmanager
def pods_of(bench, addresses=ADDRESSES, slot_s=SLOT_S, make_players=players_of):
    """@param make_players: of a cluster, who are told what changes at the API server  @returns hosts, cluster, api, pauses: an empty cluster"""
    with contextlib.ExitStack() as held:
        shared = bench.new_run_dir()
        shared.mkdir()
        hosts = held.enter_context(net_hosts.net_hosts(shared, addresses))
        (shared / "pauses").mkdir(mode=0o755)
        pauses = held.enter_context(paused_runs.pauses(shared / "pauses", slot_s))
        cluster = held.enter_context(small_cluster.cluster(hosts, shared / "cluster", bench.program, shared / "pauses"))
        api = held.enter_context(cluster_api(cluster, shared / "authority", make_players(cluster)))
        yield hosts, cluster, api, pauses


@contextlib.contextmanager
def etcd_of(bench, parts, is_wanted):
    """One of a single member, at an address of its own. @returns None where none is wanted"""
    hosts, cluster, *_ = parts
    if not is_wanted:
        yield None
        return
    where = cluster.free_hosts.pop()
    with etcd_members(bench.new_run_dir() / "etcd", [hosts.address(where)], [hosts.within(where)]) as made:
        yield made


def run_struck(bench, shape, plan, data, reference, source):
    """One job under these faults, checked."""
    begin = time.monotonic()
    with pods_of(bench) as parts, etcd_of(bench, parts, shape.in_etcd) as etcd:
        struck = struck_pods(bench, data, shape, parts, source, etcd)
        try:
            struck.begin()
            struck.carry_out(plan)
            report = struck.expect_end(reference)
        except AssertionError as why:
            said = "\n".join(f"--- {one.name}\n{one.said()[-3000:]}" for one in struck.cluster.pods)
            raise type(why)(f"{why}\nrecovered so far: {struck.recovered_s}; status {struck.status()}\n{said}") from why
    return outcome(time.monotonic() - begin, struck.recovered_s, report)
