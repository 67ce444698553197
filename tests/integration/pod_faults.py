"""Seeded faults of a job on pods: what Kubernetes and its nodes do to pods, and what befalls Kubernetes itself. Pods are played on four
nodes (small_cluster). The result must be that of an undisturbed run on one host, and no pod and no process may be left.

A fault that comes alone is waited for: what it is to cause happens, and the job trains again on all its pods. Of faults that come at once
the second does not wait for what the first has caused.
"""

import contextlib
import time
import typing

import net_hosts
import paused_runs
import small_cluster
from etcd_members import etcd_members
from faults_of_control import OF_API, OF_CONTROL, api_struck, control_struck
from faults_of_pods import OF_CONTAINERS, OF_NODES, OF_PODS, containers_struck, nodes_struck, pods_struck
from pod_jobs import NAME, cluster_api, players_of
from waiting import expect, wait_until

ADDRESSES = 16  # of pods, and of the API server
SLOT_S = 0.3  # the job takes minutes, unless it is let go
MEMORY_MAX = "64Gi"
KINDS = (*OF_CONTAINERS, *OF_PODS, *OF_NODES, *OF_CONTROL, *OF_API)  # also the order of those that come at once
NONE_CAN_COME = ("pending", "image")  # but these are last: others need a pod that runs
ALONE = ("etcd_restored",)  # which waits for what it does itself
AT_ONCE = 0.25  # share of faults
MOMENT_S = 1.0  # a fault comes at most so long after the job has recovered from the one before
# The first process of a container ignores a SIGTERM that comes before it has a handler: then
# SIGKILL ends it, after the grace of its pod (45 s).
GONE_WITHIN_S = 60


def plan_faults(source):
    """@returns [kinds that come at once]"""
    groups = [[source.choice(KINDS)]]
    for _ in range(source.randint(2, 4)):
        kind = source.choice(KINDS)
        if source.random() < AT_ONCE and kind not in groups[-1] and not {kind, *groups[-1]} & set(ALONE):
            groups[-1].append(kind)
        else:
            groups.append([kind])
    return [sorted(group, key=lambda kind: (kind in NONE_CAN_COME, KINDS.index(kind))) for group in groups]


class struck_pods(containers_struck, pods_struck, nodes_struck, control_struck, api_struck):
    """A job on its pods, and what is done to it."""

    def __init__(self, bench, data, shape, parts, source, etcd=None):
        """@param parts hosts, cluster, api, pauses"""
        super().__init__()
        self.bench, self.program, self.data, self.shape, self.source = bench, bench.program, data, shape, source
        self.hosts, self.cluster, self.api, self.pauses = parts
        self.nodes, self.pod_hosts, self.ps_hosts, self.etcd = self.cluster.nodes, shape.pod_hosts, shape.ps_hosts, etcd
        if etcd:
            self.claims = ("--model-claim", "models")
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
            wait_until(self.has_a_pod_each, "no host has a second pod, as one that is to end")
            for one in self.threads:
                one.join()
            self.threads.clear()
            self.recovered_s.append((kinds, time.monotonic() - begin))

    def has_a_pod_each(self):
        hosts = [one.host_name for one in self.pods_of_hosts()]
        return len(hosts) == len(set(hosts))

    def mend(self):
        """What is mended by somebody else than the job."""
        if self.api.is_stopped:
            self.api.come_back()
        self.cluster.heal()
        for node in list(self.nodes.lost):
            self.nodes.replace(node)
        self.nodes.mend_image()
        self.nodes.uncordon(*list(self.nodes.cordoned))

    # ---- its end

    def expect_end(self, reference):
        report = self.wait_for_end(reference)

        spared = self.etcd.pids() if self.etcd else set()

        def left():
            return {name: pids for name in self.hosts.names if (pids := set(self.hosts.processes(name)) - spared)}

        with contextlib.suppress(AssertionError):
            wait_until(lambda: not left(), "nothing runs at any address", GONE_WITHIN_S)
        expect(not left(), f"processes are left {GONE_WITHIN_S} s after the end: {left()}")
        wait_until(lambda: all(one.phase != "Running" for one in self.cluster.pods), "no pod is left")  # kubelets hear of an end a moment later
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
