"""Jobs on pods whose Job is suspended and released (R42): the run waits on the claim, without a pod of a host, and goes on where it was."""

import os
import signal

from bench_case import main
from dlrun_job import BEGUN_AT_MOST, output_of, wait_until
from pods_case import HOSTS, INTERRUPTED, NAME, on_pods, worker_on

LARGE = 600  # bytes of a packet: beats and small messages are smaller, what stores come in is not


class is_suspended(on_pods):
    def expect_suspended(self):
        """The control pod ends, with what it tells."""
        control = self.control_pod()
        self.suspend()
        wait_until(lambda: control.exit_codes, "the control pod ends")
        self.assertEqual(control.exit_codes, [INTERRUPTED], control.said())
        self.assertIn("its Job is suspended", control.said())

    def expect_nothing_left(self, step):
        """But the claim, and annotations that say how far it is."""
        wait_until(lambda: not self.pods_told() and not self.pods_of_hosts(), "the pods of hosts are deleted")
        self.assertEqual(sorted(one.name for one in self.run_dir.glob("ps_shard-*")), ["ps_shard-0", "ps_shard-1"])
        self.assertGreaterEqual(int(self.annotations()["dlrun/suspended-at-step"]), step)
        self.assertRegex(self.annotations()["dlrun/suspended"], r"^20\d\d-\d\d-\d\dT")

    def expect_same(self, spec):
        report = self.expect_complete(spec)
        self.assertEqual(report["steps_redone"], 0)

    def test_twice_and_goes_on_where_it_was(self):
        spec, step = self.unhurried_spec(), 0
        self.start(spec)
        for _ in range(2):
            step = self.wait_until_trains(beyond=step)["step"]
            made = self.made_pods()
            self.expect_suspended()
            self.expect_nothing_left(step)
            self.assertEqual(self.made_pods(), made)
            self.suspend(False)
        self.wait_until_trains(beyond=step)
        self.assertEqual(len(self.events("stores-collected")), 1, "the second time all of them were in the claim")
        self.expect_same(spec)

    def test_from_the_beginning_and_before_its_hosts_are_there(self):
        """As Kueue makes Jobs, and takes them back."""
        spec = self.unhurried_spec()
        self.cluster.apply(self.manifests(spec))
        self.suspend()
        self.assertEqual(self.cluster.pods, [])
        self.cluster.nodes.spoil_image()  # of the pods of hosts, which wait
        self.suspend(False)
        wait_until(lambda: len(self.pods_told()) == HOSTS, "pods of hosts are made")
        self.expect_suspended()
        wait_until(lambda: not self.pods_told(), "the pods of hosts are deleted")
        self.cluster.nodes.mend_image()
        self.suspend(False)
        self.wait_until_trains()
        self.expect_same(spec)

    def test_and_released_before_its_control_pod_asks_what_for(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        with self.cluster.lock:  # so the API server answers nobody
            self.suspend()
            self.suspend(False)
        self.expect_adopted(spec, step)

    def expect_adopted(self, spec, step):
        wait_until(lambda: self.control_pod() not in (None, self.control), "there is another control pod")
        self.wait_until_trains(beyond=step)
        self.assertEqual(len(self.made_pods()), HOSTS, "the pods of hosts stayed")
        self.expect_same(spec)

    # ---- while it ends

    def begin_to_end(self, spec, meanwhile):
        """The job is suspended, and takes two seconds to end: a worker is stopped. `meanwhile(pod with PS shard 1)` happens before that
        is over; where this process had to wait for longer, all begins again. @returns step, and that pod"""
        for _ in range(BEGUN_AT_MOST):
            step = self.wait_until_trains()["step"]
            places = {(event["role"], event["index"]): event["host"] for event in self.events("role-placed")}
            [holder] = [one for one in self.hosts_pods if one.host_name == places["ps_shard", 1]]
            os.kill(worker_on(self.hosts, self.hosts_pods[0]), signal.SIGSTOP)
            self.suspend()
            wait_until(lambda: self.is_stopping() or self.control.exit_codes, "the job is stopped", poll_s=0.01)
            meanwhile(holder)
            if self.is_stopping() and not self.events("stores-collected"):
                return step, holder
            self.hosts.heal(self.control.host)
            self.begin_again(spec)
        return self.fail(f"the root was always quicker\n{self.control.said()}")

    def is_stopping(self):
        return self.told_by_root(self.control).get("status") == "stopping"

    def hold_back(self, pod):
        """What comes from there is in packets that the control pod does not get."""
        self.hosts.drop(self.control.host, f"ip saddr {self.hosts.address(pod.host)} ip length > {LARGE}")

    def test_and_released_while_it_ends(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step, _ = self.begin_to_end(spec, lambda holder: self.suspend(False))
        self.expect_adopted(spec, step)

    def test_and_its_control_pod_is_killed_while_it_brings_stores(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step, _ = self.begin_to_end(spec, self.hold_back)
        wait_until(lambda: not [pid for one in self.hosts_pods for pid in self.roles_in(one)], "all roles have ended", poll_s=0.01)
        self.control.kill_container()
        wait_until(lambda: self.control_pod() is None, "the control pod is gone")
        self.expect_kept(spec, step)

    def test_and_a_store_cannot_be_brought(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step, holder = self.begin_to_end(spec, self.hold_back)
        wait_until(lambda: self.control.exit_codes, "the control pod ends")
        self.assertEqual(len(self.events("store-stays")), 1)
        self.assertIn(f"the pods of hosts stay while the Job is suspended; on hosts alone: PS shard 1 (last on host {holder.host_name})",
                      self.control.said())
        self.expect_kept(spec, step)

    def roles_in(self, pod):
        return [pid for pid in self.hosts.processes(pod.host)
                if any(f"/{role}-" in file for file in output_of(pid) for role in ("worker", "ps_shard", "keeper"))]

    def expect_kept(self, spec, step):
        """The pods of hosts stay, with the store that is there alone."""
        self.assertEqual(self.events("stores-collected"), [])
        self.assertEqual(self.pods_told(), self.made_pods())
        self.hosts.heal(self.control.host)
        self.suspend(False)
        self.expect_adopted(spec, step)


if __name__ == "__main__":
    main()
