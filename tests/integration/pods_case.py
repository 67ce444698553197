"""Base of tests of a job on pods (pod_jobs)."""

import os
import shutil
import signal

import images
import net_hosts
import paused_runs
import small_cluster
from dlrun_job import BEGUN_AT_MOST, output_of, wait_until
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
        except (images.no_image, net_hosts.no_namespaces) as why:
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

    def hold_the_end(self, spec):
        """The job is complete in its journal, and the root, which is stopped then, has not asked for stores: a worker that is stopped
        makes it wait for two seconds. Where this process had to wait for longer, the job is begun again."""
        for _ in range(BEGUN_AT_MOST):
            self.wait_until_trains()
            os.kill(worker_on(self.hosts, self.hosts_pods[0]), signal.SIGSTOP)
            self.pauses.end()
            if self.is_root_stopped_before_it_collects():
                return
            self.begin_again(spec)
        self.fail(f"the root was never stopped in time\n{self.control.said()}")

    def is_root_stopped_before_it_collects(self):
        wait_until(lambda: self.told_by_root(self.control).get("status") == "stopping" or self.control.exit_codes,
                   "the job is complete in its journal", poll_s=0.01)
        root = self.control.main_process()
        if root is None:
            return False
        os.kill(root, signal.SIGSTOP)
        if not self.events("stores-collected"):
            return True
        os.kill(root, signal.SIGCONT)
        return False

    def delete_job(self):
        """As `kubectl delete`."""
        with self.cluster.lock:
            del self.cluster.objects["Job", NAME]
        self.cluster.api.space.collect_garbage()
        wait_until(lambda: not self.pods_told() and not self.cluster.pods_of(f"{NAME}-hosts") and not self.cluster.pods_of(NAME),
                   "its pods end")
        for one in self.cluster.pods:
            one.thread.join()

    def begin_again(self, spec):
        """With a run of its own, as if there had been none."""
        run_dir = self.run_dir
        self.delete_job()
        shutil.rmtree(run_dir, ignore_errors=True)
        with self.cluster.lock:
            for known in (self.cluster.jobs_over, self.cluster.succeeded, self.api.created):
                known.clear()
        self.pauses.write()
        self.start(spec)

    def unhurried_spec(self):
        """Of a job to which something happens."""
        self.pauses.set_all(UNHURRIED_SLOT_S)
        return self.small_job(orphan_grace_s=GRACE_S)
