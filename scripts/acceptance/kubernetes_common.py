"""What the acceptance scripts of jobs on played pods share (tests/integration/pod_jobs.py, pod_faults.py)."""

import collections
import contextlib
import os
import time

import acceptance_common as common
from acceptance_common import dlrun_job, small_data

import host_faults
import paused_runs
import pod_faults
from pod_jobs import NAME, job_on_pods

GRACE_S = 60
STANDBY, SAID_MAX = "this one waits", 2000  # what it says last
WORKER_WEIGHT = 100  # of other roles
CONTROL = "control"  # its host, in the list
PROCESS_OF = {"worker": "/worker-", "ps_shard": "/ps_shard-", "keeper": "/keeper-", "coordinator": "/coordinator"}


def make_parser(doc):
    return common.make_parser(doc, program="dlrun_pausing_program")


def make_spec(data, epochs, workers, ps_shards, slots=4):
    spec = small_data.make_spec("mlp_dropout", data, epochs=epochs, workers=workers, ps_shards=ps_shards, microbatches_per_step=slots)
    spec["durability"] = {"log": "every_step"}
    spec["cluster"]["orphan_grace_s"] = GRACE_S
    return paused_runs.with_pauses(spec)


class measured_pods(job_on_pods):
    """A job that trains on pods of its own, until it is left; or is let go, and ends with the bits of one host."""

    def __init__(self, bench, data, spec, parts, pod_hosts):
        self.bench, self.program, self.data, self.spec, self.pod_hosts = bench, bench.program, data, spec, pod_hosts
        self.hosts, self.cluster, self.api, self.pauses = parts
        self.nodes = self.cluster.nodes

    def use_etcd(self, etcd):
        """With a node for each pod, so that no other one is lost with a control pod."""
        self.spec["cluster"]["journal"] = etcd.journal()
        self.claims, self.nodes.count = ("--model-claim", "models"), self.pod_hosts + 3

    def does_one_wait(self):
        """A second control pod, to lead."""
        leader = self.control_pod()
        return any(one is not leader and STANDBY in one.said()[-SAID_MAX:].rstrip().rpartition("\n")[2] for one in self.cluster.pods_of(NAME))

    def step(self):
        return self.status().get("step", 0)

    def node_to_strike(self):
        """Of those with pods of hosts alone, the one with most workers, or with most roles: a host without any may be so new that its
        loss is that of one which never joined. @returns it, and them"""
        control = self.control_pod()
        nodes = sorted({one.node for one in self.pods_of_hosts()} - {control.node})
        dlrun_job.expect(nodes, "no node has pods of hosts alone")
        roles = collections.Counter()
        for one in self.status()["roles"]:
            roles[one.get("host")] += WORKER_WEIGHT if one["role"] == "worker" else 1
        pods = {node: [one for one in self.pods_of_hosts() if one.node == node] for node in nodes}
        node = max(nodes, key=lambda node: sum(roles[one.host_name] for one in pods[node]))
        return node, pods[node]

    def folder_of_shard(self, index):
        """Of the run, in the pod where that PS shard is."""
        placed = [one["host"] for one in self.events("role-placed") if (one["role"], one["index"]) == ("ps_shard", index)][-1]
        if placed == CONTROL:
            return self.run_dir
        [pod] = [one for one in self.pods_of_hosts() if one.host_name == placed]
        [store] = pod.volume("run").rglob(f"ps_shard-{index}")
        return store.parent

    def processes_of(self, role, pods):
        """Of a role, in these pods."""
        return [pid for one in pods for pid in self.hosts.processes(one.host) if any(PROCESS_OF[role] in file for file in dlrun_job.output_of(pid))]

    def all_contribute(self):
        """Whether all hosts are there, and every worker has slots."""
        status = self.status()
        if [one["state"] for one in status.get("hosts", [])].count("there") != self.pod_hosts + 1:
            return False
        workers = [one for one in status["roles"] if one["role"] == "worker"]
        return all(one["pid"] and one.get("slots") for one in workers)

    def are_copies_whole(self):
        copies = [one["state"] for one in self.status().get("roles", []) if one["role"] == "keeper"]
        return bool(copies) and set(copies) == {"whole"}

    def joined_since(self, host, since_us):
        """Milliseconds until that host joined, or None."""
        told = [one["monotonic_us"] for one in self.events("host-joined") if one["host"] == host and one["monotonic_us"] >= since_us]
        return (told[0] - since_us) / 1000 if told else None


@contextlib.contextmanager
def training(program, spec_of, pod_hosts, slot_s, addresses, options=(), has_standby=False):
    """A job of `spec_of(data)` that trains on its pods. @param options of `dlrun manifests`; has_standby: its journal is in an etcd, and a
    second control pod waits @returns it"""
    with dlrun_job.job_bench(program, host_faults.FILES) as bench:
        data = small_data.write_images(bench.folder, "train", common.RECORDS)
        with pod_faults.pods_of(bench, addresses, slot_s) as parts, pod_faults.etcd_of(bench, parts, has_standby) as etcd:
            job = measured_pods(bench, data, spec_of(data), parts, pod_hosts)
            if etcd:
                job.use_etcd(etcd)
                options = [*options, "--standby"]
            job.cluster.apply(job.manifests(job.spec, *options))
            job.cluster.start(NAME)
            job.wait_until_trains()
            yield job


def machine():
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def seconds_until(condition, what, begin=None):
    begin = begin or time.monotonic()
    dlrun_job.wait_until(condition, what)
    return time.monotonic() - begin
