"""Base of tests of a job on pods (pod_jobs)."""

import os
import signal

import images
import paused_runs
import small_cluster
from dlrun_job import output_of, wait_until
from hosts_case import SLOT_S, UNHURRIED_SLOT_S, on_several_hosts
from played_pod import WRITABLE_BY_GROUP
from pod_jobs import COMPLETED, HOSTS, INTERRUPTED, NAME, cluster_api, job_on_pods

GRACE_S = 20
HEAD_MAX = 4096


def worker_on(hosts, pod):
    """The process of a worker there, as this host numbers it."""
    return next(pid for pid in hosts.processes(pod.host) if any("/worker-" in file for file in output_of(pid)))


class on_pods(job_on_pods, on_several_hosts):
    host_count = 7  # the addresses of a cluster: a pod that replaces another one has its own, and so has the API server

    def setUp(self):
        super().setUp()
        shared = self.bench.folder / "shared"
        shared.mkdir()
        shared.chmod(0o755)
        self.pauses = self.enterContext(paused_runs.pauses(shared, SLOT_S))
        self.cluster = self.enterContext(self.make_cluster(shared))
        self.api = self.enterContext(cluster_api(self.cluster, self.bench.folder / "authority"))

    def make_cluster(self, shared):
        try:
            return small_cluster.cluster(self.hosts, self.bench.folder / "cluster", self.program, shared)
        except images.no_image as why:
            return self.leave_out(why)

    def expect_complete(self, spec):
        """The Job comes to its end, its pods are gone, and the bits are those of one host."""
        self.pauses.end()
        return self.wait_for_end(self.undisturbed(spec))

    def expect_ended(self, *pods, before=0):
        """With the job, after so many other ends. A pod may be asked to end before it hears that the job is over: another one
        has told that."""
        for one in pods:
            self.assertEqual(len(one.exit_codes), before + 1, one.said())
            self.assertIn(one.exit_codes[-1], (COMPLETED, INTERRUPTED), one.said())

    def close_claim(self):
        """Of the model: nobody may write into it."""
        self.cluster.claim("models").chmod(0o555)

    def open_claim(self):
        self.cluster.claim("models").chmod(WRITABLE_BY_GROUP)

    def exported(self):
        """What the weights file says of itself."""
        return (self.cluster.claim("models") / f"{NAME}.safetensors").read_bytes()[:HEAD_MAX].decode(errors="replace")

    def use_up_memory_twice(self, pod):
        """The second time when it is back. A busy machine may make the job lose hosts beside, and this one once more."""
        self.wait_until_trains()
        before = self.losses_of(pod.host_name)
        pod.kill_container("OOMKilled")
        wait_until(lambda: self.losses_of(pod.host_name) > before, "its host is lost")
        self.wait_until_trains()
        pod.kill_container("OOMKilled")

    def losses_of(self, host):
        return sum(event["host"] == host for event in self.events("host-lost"))

    def made_for(self, host):
        """Names of its pods that were made through the API."""
        return {name for name in self.made_pods() if name.rpartition("-")[0] == host}

    def come_to_the_end(self):
        """Complete in its journal, while a worker, which is stopped, takes two seconds to end."""
        self.wait_until_trains()
        os.kill(worker_on(self.hosts, self.hosts_pods[0]), signal.SIGSTOP)
        self.pauses.end()
        wait_until(lambda: self.status().get("status") == "stopping", "the job is complete in its journal", poll_s=0.01)

    def unhurried_spec(self):
        """Of a job to which something happens."""
        self.pauses.set_all(UNHURRIED_SLOT_S)
        return self.small_job(orphan_grace_s=GRACE_S)
