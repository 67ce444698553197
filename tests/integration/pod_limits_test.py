"""Limits of memory of a job on pods, which cgroups of this machine hold it to: those that are computed suffice, and who uses more is killed by
the kernel."""

import shutil
import subprocess

from api_objects import quantity
from bench_case import main
from dlrun_job import wait_until
from pods_case import COMPLETED, HOSTS, NAME, on_pods

FILLER = "dd"  # it is at once as large as what it copies at once
OOM_KILLED = {"reason": "OOMKilled", "exitCode": 137}


class with_limits(on_pods):
    def setUp(self):
        super().setUp()
        if self.cluster.why_no_memory:
            self.skipTest(f"no limits can be set here: {self.cluster.why_no_memory}")  # in CI too: a container may lack them

    def limit_told(self, pod):
        """In bytes."""
        return int(quantity(pod.only_container()["resources"]["limits"]["memory"]))

    def expect_limited(self, pod):
        """To what its manifest says, with all that runs there."""
        self.assertEqual(pod.cgroup.limit(), self.limit_told(pod))
        self.assertLessEqual(set(self.hosts.processes(pod.host)), set(pod.cgroup.processes()))


class suffices(with_limits):
    """Memory as `dlrun manifests` computes it, where it is not told how much."""

    DATA = "4MiB"  # decoded, a little more than there is: the manifests are written where no data is

    def spec_of_pods(self, spec):
        made = super().spec_of_pods(spec)
        return made | {"data": made["data"] | {"memory_limit": self.DATA}}

    def words_for(self, verb, spec, *options):
        words = super().words_for(verb, spec, *options)
        at = words.index("--memory")
        return [*words[:at], *words[at + 2:]]

    def computed_manifests(self, spec):
        done = subprocess.run(self.words_for("manifests", spec), capture_output=True, text=True)
        self.assertEqual(done.returncode, COMPLETED, done.stderr)
        self.assertIn("as the job needs it, each pod has --memory", done.stderr)
        return done.stdout

    def train_to_the_end(self, spec):
        self.cluster.apply(self.computed_manifests(spec))
        [self.control] = self.cluster.start(NAME)
        self.wait_until_trains()
        there = [self.control, *self.pods_of_hosts()]
        for one in there:
            self.expect_limited(one)
        self.expect_complete(spec)
        for one in there:
            self.assertEqual((one.restarts, one.ended_by), (0, None), one.said())
        self.assertEqual(len(self.cluster.pods), HOSTS + 1)

    def test_what_is_computed(self):
        self.train_to_the_end(self.small_job())


class is_used_up(with_limits):
    memory = "512Mi"
    GROWN = "768Mi"

    def setUp(self):
        super().setUp()
        shutil.copy(shutil.which(FILLER), self.cluster.pauses)  # which all pods have

    def fill(self, pod):
        """A process in its container takes twice what that may have."""
        return pod.execute(f"/pauses/{FILLER}", "if=/dev/zero", "of=/dev/null", "count=1", f"bs={2 * self.limit_told(pod)}")

    def last_end(self, pod):
        """As the API server tells it."""
        [container] = self.cluster.objects["Pod", pod.name]["status"]["containerStatuses"]
        return container.get("lastState", {}).get("terminated")

    def expect_out_of_memory(self, pod):
        ends = len(pod.exit_codes)
        code, _, complaint = self.fill(pod)
        self.assertNotEqual(code, 0, "it had what it wanted")
        self.assertEqual(complaint, "")
        wait_until(lambda: len(pod.exit_codes) > ends, "the whole container ends")
        self.assertEqual(pod.ended_by, tuple(OOM_KILLED.values()))

    def test_by_what_is_executed_there_and_its_next_pod_has_more(self):
        spec = self.unhurried_spec()
        self.start(spec, "--memory-max", "2Gi")
        step = self.wait_until_trains()["step"]
        victim = self.hosts_pods[1]
        self.expect_limited(victim)
        self.expect_out_of_memory(victim)
        wait_until(lambda: victim.main_process() and self.last_end(victim) == OOM_KILLED, "it is started again")
        self.wait_until_trains(beyond=step)
        self.assertEqual(len(self.made_pods()), HOSTS, "the first time in its pod")
        self.expect_out_of_memory(victim)
        self.expect_grown(victim)
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)

    def expect_grown(self, victim):
        def successor():
            return next((one for one in self.pods_of_hosts() if one.host_name == victim.host_name and one is not victim), None)

        wait_until(lambda: f"was out of memory twice, with {self.memory}: its next pod has {self.GROWN}" in self.control.said(), "it says why")
        grown = wait_until(successor, "its successor is made")
        self.assertEqual(grown.only_container()["resources"]["limits"]["memory"], self.GROWN)
        wait_until(grown.main_process, "its successor runs")
        self.expect_limited(grown)
        wait_until(lambda: self.made_for(victim.host_name) >= {f"{victim.host_name}-1", f"{victim.host_name}-2"}, "it has another number")


class leaves_nothing(with_limits):
    def test_behind(self):
        self.start(self.unhurried_spec())
        self.wait_until_trains()
        folder = self.cluster.memory.folder
        self.assertEqual(len([one for one in folder.iterdir() if one.is_dir()]), HOSTS + 1)
        self.cluster.__exit__()
        self.assertFalse(folder.exists())


if __name__ == "__main__":
    main()
