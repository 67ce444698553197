"""A job on many pods, of which the control pod alone is real (small_cluster): it makes and replaces the others beside a played API server, and
nothing runs in them (many_kubelets). The job trains on the control pod, since it may begin with that (--hosts-min 1), and a pod that has not
joined is let be: it is on its way.
"""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import many_kubelets
import paused_runs
import pod_faults
import small_data
from pod_jobs import NAME, job_on_pods
from waiting import expect, wait_until

EPOCHS = 100_000  # it does not end by itself
SLOT_S = 0.5  # the roles on the control pod leave the processor alone
ADDRESSES = 3
PENDING_PATIENCE_S = 5  # from when on the root says which pods do not run
KNOWN_WITHIN_S = 10  # what the API server told: the root looks ten times a second
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
ASKER = pathlib.Path(__file__).with_name("root_asker.py")


class many_pods(job_on_pods):
    """@param seed of which pods are killed"""

    def __init__(self, bench, data, parts, pod_hosts, kubelets, seed):
        self.bench, self.program, self.data, self.pod_hosts, self.kubelets = bench, bench.program, data, pod_hosts, kubelets
        self.hosts, self.cluster, self.api, self.pauses = parts
        self.random = random.Random(seed)

    def begin(self):
        """Makes the control pod, and does not wait for others."""
        spec = small_data.make_spec("mlp_dropout", self.data, epochs=EPOCHS, workers=1, ps_shards=1)
        self.cluster.apply(self.manifests(paused_runs.with_pauses(spec), "--hosts-min", "1", "--pending-patience", str(PENDING_PATIENCE_S)))
        [self.control] = self.cluster.start(NAME)

    def root(self):
        """Number of its process."""
        return wait_until(self.control.main_process, "the control pod runs")

    # ---- what the API server has, and what the root knows of it

    def pods(self):
        """Of hosts."""
        with self.api.lock:
            return [one for one in self.api.space.of("Pod") if many_kubelets.is_of_host(one)]

    def is_complete(self):
        """Of each host one pod, which runs, says the API server."""
        with self.api.lock:
            found = many_kubelets.by_slot(self.pods())
            return len(found) == self.pod_hosts and all(
                len(pods) == 1 and pods[0]["status"]["phase"] == "Running" and "deletionTimestamp" not in pods[0]["metadata"]
                for pods in found.values())

    def run_now(self):
        """How many pods do, and are to."""
        return sum(one["status"]["phase"] == "Running" and "deletionTimestamp" not in one["metadata"] for one in self.pods())

    def times_known(self):
        """How often the root has said that it knows all pods to run, and no other."""
        return self.control.said().count(f"all {self.pod_hosts} pods of hosts run\n")

    def expect_known(self, known_before, patience_s=KNOWN_WITHIN_S):
        """The root knows all that the API server has told of pods: an event that it lost would leave it with a pod that does not run, or is
        there no more. @param known_before times_known() before that"""
        wait_until(self.is_complete, "each host has one pod, which runs")
        wait_until(lambda: self.times_known() > known_before, f"the root knows that all {self.pod_hosts} pods run; held up by "
                   f"{self.status().get('held_up_by')}", patience_s)

    # ---- what happens

    def choose(self, count):
        """So many of its pods."""
        return self.random.sample(self.pods(), count)

    def kill(self, count):
        """@returns seconds until all that were killed have successors which run"""
        known, begin = self.times_known(), time.monotonic()
        self.kubelets.kill(self.api.space, self.choose(count))
        expect(not self.is_complete(), "pods are killed")
        wait_until(self.is_complete, "each host has one pod, which runs")
        seconds = time.monotonic() - begin
        self.expect_known(known)
        return seconds

    def expire_watch(self, count):
        """Its history is compacted (410) just when so many pods are gone or have failed, which no watch tells. @returns seconds from then
        until all was listed and is watched again, and until the first pod was replaced"""
        known, going = self.times_known(), self.choose(count)
        self.api.history.silence(True)
        with self.api.lock:
            made, asked = set(self.api.created), len(self.api.asked)
            self.kubelets.kill_unseen(self.api.space, going)
            begin, begin_s = time.monotonic(), time.time()
            self.api.compact()
            self.api.history.silence(False)
        wait_until(lambda: "watch pods" in self.api.asked[asked:], "it watches again")
        wait_until(lambda: set(self.api.created) - made, "a pod is replaced")
        with self.api.lock:
            expect("list pods" in self.api.asked[asked:], "it lists the pods first")
            watched = self.api.asked_at[self.api.asked.index("watch pods", asked)]
            replaced_s = min(moment for key, moment in self.api.created.items() if key not in made)
        self.expect_known(known)
        return watched - begin, replaced_s - begin_s

    # ---- what it costs

    def processor_s(self):
        """That the root has used."""
        fields = pathlib.Path(f"/proc/{self.root()}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    def idle_share(self, seconds):
        """Of a core, by the root, while nothing happens to pods."""
        begin, used = time.monotonic(), self.processor_s()
        time.sleep(seconds)  # which is what is measured
        return (self.processor_s() - used) / (time.monotonic() - begin)

    def memory_mib(self):
        """Of the root: what is resident of it, its share of that by the number of processes that have it too, and the most that was resident."""
        proc = pathlib.Path(f"/proc/{self.root()}")
        lines = [*(proc / "smaps_rollup").read_text().splitlines()[1:], *(proc / "status").read_text().splitlines()]
        fields = {line.split(":")[0]: line.split()[1] for line in lines if len(line.split()) > 1}
        return [int(fields[key]) / 1024 for key in ("Rss", "Pss", "VmHWM")]

    def pod_kib(self):
        """Of a pod, as the API server tells it, on average."""
        with self.api.lock:
            texts = [one.text for one in self.api.history.changes if one.kind == "Pod"] or [""]
        return sum(map(len, texts)) / len(texts) / 1024

    @contextlib.contextmanager
    def asked(self):
        """The actor of the root is asked again and again meanwhile. @returns a list, of (moment, ms until the answer), when that is over"""
        answers, user = [], self.control.spec["securityContext"]["runAsUser"]
        file = self.bench.new_run_dir().with_suffix(".answers")
        with open(file, "wb") as output:
            asker = subprocess.Popen([sys.executable, "-B", ASKER, str(user)], cwd=self.run_dir, stdout=output)
            try:
                wait_until(lambda: file.stat().st_size or asker.poll() is not None, "the root is asked")
                yield answers
            finally:
                asker.send_signal(signal.SIGTERM)
                code = asker.wait()
        expect(code == -signal.SIGTERM, f"who asks the root has ended with {code}")
        answers += [tuple(map(float, line.split())) for line in file.read_text().rpartition("\n")[0].splitlines()]


@contextlib.contextmanager
def many_pods_of(bench, data, pod_hosts, seed=7):
    """@returns a job that has not begun"""
    with contextlib.ExitStack() as held:
        made = []

        def play(cluster):
            made.append(held.enter_context(many_kubelets.many_kubelets(cluster, seed)))
            return made[0]

        parts = held.enter_context(pod_faults.pods_of(bench, ADDRESSES, SLOT_S, play))
        yield many_pods(bench, data, parts, pod_hosts, made[0], seed)
