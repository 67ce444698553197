"""A job on pods whose nodes are drained or driven empty: no pod goes while another one is the only place of something."""

import json
import threading

from bench_case import main
from dlrun_job import wait_until
from object_conditions import condition_of
from pod_nodes import name_of
from pods_case import NAME, on_pods

BORNE_S = 10  # by pods of hosts, of nodes that are not ready
BUDGET = "PodDisruptionBudget", f"{NAME}-hosts"


class on_three_pods(on_pods):
    pod_hosts = 3

    def start_calmly(self):
        """@returns the spec, and the step from which on one pod may go"""
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        wait_until(lambda: self.budget().get("disruptionsAllowed") == 1, "one pod may be evicted")
        return spec, step

    def budget(self):
        """What the disruption controller says of it."""
        return self.cluster.objects[BUDGET].get("status", {})

    def told_of(self, pod):
        """All that the API server told of it, in order."""
        with self.api.lock:
            return [one for change in self.api.history.changes if change.kind == "Pod"
                    and (one := json.loads(change.text))["metadata"]["name"] == pod.name]

    def expect_told_before_it_went(self, pod, reason):
        told = [one for one in self.told_of(pod) if condition_of(one, "DisruptionTarget")]
        self.assertEqual(condition_of(told[0], "DisruptionTarget")["reason"], reason)
        self.assertEqual(["deletionTimestamp" in one["metadata"] for one in told[:2]], [False, True])

    def expect_nothing_redone(self, spec, step):
        self.wait_until_trains(beyond=step)
        self.assertEqual(self.expect_complete(spec)["steps_redone"], 0)
        self.assertEqual(self.events("host-lost"), [])


class two_nodes(on_three_pods):
    def test_that_are_drained_at_once_are_empty_one_after_the_other(self):
        spec, step = self.start_calmly()
        victims = self.hosts_pods[:2]
        self.assertEqual(len({one.node for one in (self.control, *self.hosts_pods)}), 4, "each is on a node of its own")
        drains = [threading.Thread(target=self.cluster.nodes.drain, args=(one.node,), daemon=True) for one in victims]
        for one in drains:
            one.start()
        for one in drains:
            one.join()
        joined = self.pod_hosts + len(victims)
        wait_until(lambda: len(self.events("host-joined")) == joined, "their successors join")
        self.expect_apart(victims)
        for one in victims:
            self.expect_told_before_it_went(one, "EvictionByEvictionAPI")
        self.assertFalse({one.node for one in self.pods_of_hosts()} & {one.node for one in victims})
        self.expect_nothing_redone(spec, step)

    def expect_apart(self, victims):
        """Whichever went first: the budget refused the other, which left when the first had its successor in the job."""
        events = [(event["event"], event["host"]) for event in self.events() if event["event"] in ("host-joined", "host-left")][self.pod_hosts:]
        first, second = (host for kind, host in events if kind == "host-left")
        self.assertEqual({first, second}, {one.host_name for one in victims})
        self.assertEqual(events, [(kind, host) for host in (first, second) for kind in ("host-left", "host-joined")])
        [waited] = [one.name for one in victims if one.host_name == second]
        refusals = [told for told in self.cluster.nodes.refused[waited] if told.startswith(f"The disruption budget {NAME}-hosts needs ")]
        self.assertTrue(refusals, self.cluster.nodes.refused[waited])


class a_node(on_three_pods):
    def test_that_is_not_ready_keeps_its_pods_for_as_long_as_they_bear_it(self):
        spec, step = self.start_calmly()
        victim, controllers = self.hosts_pods[1], self.api.controllers
        controllers.hold_clock()
        self.cluster.nodes.set_ready(victim.node, "False")
        taints = {(one["key"], one["effect"]) for one in self.cluster.nodes.object_of(victim.node)["spec"]["taints"]}
        self.assertEqual(taints, {("node.kubernetes.io/not-ready", effect) for effect in ("NoSchedule", "NoExecute")})
        self.wait_until_trains(beyond=step)
        controllers.pass_time(BORNE_S - 0.1)
        self.assertNotIn("deletionTimestamp", victim.object["metadata"])
        controllers.pass_time(0.2)
        self.assertIn("deletionTimestamp", victim.object["metadata"])
        self.expect_replaced(victim, spec, step)

    def test_with_a_taint_that_pods_do_not_bear_is_left_at_once(self):
        spec, step = self.start_calmly()
        victim = self.hosts_pods[1]
        self.api.controllers.hold_clock()
        self.cluster.nodes.taint(victim.node, ("maintenance", "", "NoExecute"))
        self.assertIn("deletionTimestamp", victim.object["metadata"])
        self.expect_replaced(victim, spec, step)

    def expect_replaced(self, victim, spec, step):
        """On another node, and nothing is done again."""
        wait_until(lambda: len(self.events("host-joined")) == self.pod_hosts + 1, "its successor joins")
        self.expect_told_before_it_went(victim, "DeletionByTaintManager")
        self.assertNotIn(name_of(victim.node), [one.spec["nodeName"] for one in self.pods_of_hosts()])
        self.expect_nothing_redone(spec, step)


if __name__ == "__main__":
    main()
