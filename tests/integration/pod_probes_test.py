"""Jobs on pods whose kubelets probe them: what stands still for good is started again, and nothing else is."""

import os
import signal

from bench_case import main
from dlrun_job import wait_until
from object_conditions import condition_of, is_ready
from played_pod import KILLED
from pods_case import NAME, on_pods
from standby_test import with_a_standby

FASTER = 10  # than the manifests say: a period of 1 s in place of 10
ROUNDS = 5  # of probes that find nothing wrong: more than a failure takes
OK, NO, NOT_HERE = (200, b"ok\n"), (503, b"no\n"), (404, b"")


def stop_for_good(pod):
    """The first process of its container. @returns how often that was started again before"""
    os.kill(wait_until(pod.main_process, f"{pod.name} runs"), signal.SIGSTOP)
    return pod.restarts


class probed:
    """Base of those whose liveness probes are quick."""

    def setUp(self):
        super().setUp()
        self.cluster.probe_speeds["livenessProbe"] = FASTER

    def wait_until_started_again(self, pod, before):
        wait_until(lambda: pod.restarts == before + 1, f"the kubelet of {pod.name} starts its container again")
        self.assertEqual(pod.ended_by, ("Error", KILLED), pod.said())

    def wait_until_up(self, *pods):
        """They answer probes."""
        wait_until(lambda: all(one.probes and one.probes.asked["startupProbe"] for one in pods), "they answer")

    def wait_until_ready(self, *pods):
        wait_until(lambda: all(is_ready(one.object) for one in pods), "they are ready")

    def wait_for_rounds(self, *pods):
        """Of liveness probes that these pods answer."""
        self.wait_until_up(*pods)
        asked = [(one, one.probes, one.probes.asked["livenessProbe"]) for one in pods]
        wait_until(lambda: all(probes.asked["livenessProbe"] >= before + ROUNDS for _, probes, before in asked), "they answer")
        for one, probes, _ in asked:
            self.assertIs(one.probes, probes, f"{one.name} was started again\n{one.said()}")

    def watch_conditions(self, *pods):
        """@returns what counts how often these pods were told not to be ready since"""
        seen = {one.name: condition_of(one.object, "Ready") for one in pods}
        return lambda: [one.name for one in pods if condition_of(one.object, "Ready") != seen[one.name]]


class what_stands_still(probed, on_pods):
    def test_a_control_pod_is_started_again_while_its_hosts_stay_as_they_are(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.wait_until_ready(self.control, *self.hosts_pods)
        changed = self.watch_conditions(*self.hosts_pods)
        before = stop_for_good(self.control)
        wait_until(lambda: not is_ready(self.control.object), "it is not ready")
        self.wait_for_rounds(*self.hosts_pods)
        self.wait_until_started_again(self.control, before)
        self.wait_until_trains(beyond=step)
        self.wait_until_ready(self.control)
        self.assertEqual(changed(), [], "hosts that wait for a root have joined, and live")
        self.expect_complete(spec)
        self.assertEqual([one.restarts for one in self.hosts_pods], [0] * self.pod_hosts)
        self.assertEqual(len(self.made_pods()), self.pod_hosts)

    def test_a_host_is_started_again_where_the_control_pod_can_not_replace_its_pod(self):
        spec = self.unhurried_spec()
        self.start(spec)
        self.wait_until_trains()
        self.wait_until_ready(*self.hosts_pods)
        self.api.stop()
        victim = self.hosts_pods[0]
        before = stop_for_good(victim)
        self.wait_until_started_again(victim, before)
        self.wait_until_trains(beyond=self.status()["step"])
        self.api.come_back()
        self.expect_complete(spec)
        self.assertEqual(self.losses_of(victim.host_name), 1)


class what_moves(probed, on_pods):
    def test_is_left_alone_while_the_api_server_is_away(self):
        spec = self.unhurried_spec()
        self.start(spec)
        self.wait_until_trains()
        everybody = self.control, *self.hosts_pods
        self.wait_until_ready(*everybody)
        changed = self.watch_conditions(*everybody)
        self.api.stop()
        self.wait_for_rounds(*everybody)
        self.api.come_back()
        self.assertEqual(changed(), [])
        self.expect_complete(spec)
        self.assertEqual([one.restarts for one in everybody], [0] * len(everybody))

    def test_tells_nothing_of_the_job_and_is_ready_when_it_has_joined(self):
        spec = self.unhurried_spec()
        self.cluster.unreachable.add(f"{NAME}-hosts-1")
        self.start(spec)
        joined, parted = self.hosts_pods
        self.wait_until_ready(joined)
        self.wait_until_up(parted, self.control)
        self.assertEqual([parted.get("probes", path, 2) for path in ("/livez", "/readyz")], [OK, NO])
        self.assertEqual([self.control.get("probes", path, 2) for path in ("/livez", "/readyz")], [OK, NO], "it waits for its hosts")
        self.wait_for_rounds(parted, self.control)
        self.cluster.heal()
        self.wait_until_ready(parted, self.control)
        for one in (self.control, joined, parted):
            self.assertEqual([one.get("probes", path, 2) for path in ("/livez", "/readyz")], [OK, OK])
            self.assertEqual({one.get("probes", path, 2) for path in ("/", "/metrics", "/status", "/livez?verbose=1")}, {NOT_HERE})
        self.expect_complete(spec)


class of_two_control_pods(probed, with_a_standby):
    def test_the_one_that_leads_and_stands_still_is_the_standby_when_it_is_started_again(self):
        spec, step = self.train()
        self.wait_until_ready(self.control, self.standby)
        before = stop_for_good(self.control)
        self.wait_until_leads(lambda one: one is self.standby, "the standby")
        self.wait_until_started_again(self.control, before)
        self.wait_until_ready(self.control, self.standby)
        self.expect_led_by(self.standby, spec, step)
        self.assertEqual(len(self.control_pods()), 2)

    def test_the_one_that_waits_and_stands_still_is_started_again_and_waits(self):
        spec, _ = self.train()
        before = stop_for_good(self.standby)
        self.wait_until_started_again(self.standby, before)
        self.wait_until_ready(self.standby)
        self.assertEqual(self.control_pod(), self.control, "it leads on")
        self.expect_end(spec)


if __name__ == "__main__":
    main()
