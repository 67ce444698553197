"""What no case of api_conformance can wait for: time that passes for the controllers that are played."""

import os
import pathlib
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import api_evictions
from api_evictions import evict
from api_objects import api_history, api_space, refusal
from api_taints import NOT_READY, look_at_node, seconds_borne, taint_manager
from bench_case import write_counts
from fake_api import players
from object_conditions import condition_of, set_condition

EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}
OUT, ALSO = ({"key": key, "value": "", "effect": "NoExecute"} for key in ("out", "also"))


class runs_on(players):
    """Pods end when somebody removes them."""

    def on_end(self, space, going):
        return True


class played(unittest.TestCase):
    def setUp(self):
        self.history = api_history(lock=None)
        self.unspaced, self.space = (api_space(name, self.history, {}, runs_on()) for name in ("", "default"))
        self.manager = taint_manager()

    def make_pod(self, name, *tolerations):
        """It runs, and is ready."""
        spec = {"nodeName": "node", "containers": [{"name": "main"}], "tolerations": list(tolerations)}
        self.space.create("Pod", {"kind": "Pod", "metadata": {"name": name, "labels": {"of": "us"}}, "spec": spec})
        made = self.space.objects["Pod", name]
        made["status"]["phase"] = "Running"
        set_condition(made, "Ready", "True")
        return made

    def make_node(self, *taints):
        self.unspaced.create("Node", {"kind": "Node", "metadata": {"name": "node"}, "spec": {"taints": list(taints)}})
        return self.unspaced.objects["Node", "node"]

    def make_budget(self, least):
        spec = {"selector": {"matchLabels": {"of": "us"}}, "minAvailable": least}
        self.space.create("PodDisruptionBudget", {"kind": "PodDisruptionBudget", "metadata": {"name": "budget"}, "spec": spec})
        return self.space.objects["PodDisruptionBudget", "budget"]


def is_going(pod):
    return "deletionTimestamp" in pod["metadata"]


def bearing(key, seconds):
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


class a_taint(played):
    def look(self, now):
        self.manager.look_at(self.unspaced.of("Node"), [self.space], now)

    def test_drives_out_when_the_time_that_is_borne_is_over(self):
        pod = self.make_pod("pod", bearing("out", 10))
        self.make_node(OUT)
        self.look(100)
        self.look(109.9)
        self.assertFalse(is_going(pod))
        self.look(110)
        self.assertTrue(is_going(pod))
        self.assertEqual(condition_of(pod, "DisruptionTarget")["reason"], "DeletionByTaintManager")

    def test_that_goes_before_lets_the_pod_stay_and_the_next_one_counts_anew(self):
        pod, node = self.make_pod("pod", bearing("out", 10)), self.make_node(OUT)
        self.look(100)
        node["spec"]["taints"] = []
        self.look(105)
        node["spec"]["taints"] = [OUT]
        self.look(108)
        self.look(117)
        self.assertFalse(is_going(pod))
        self.look(118)
        self.assertTrue(is_going(pod))

    def test_beside_another_one_is_borne_for_the_shorter_time(self):
        pod = self.make_pod("pod", bearing("out", 10), bearing("also", 5))
        taints = [(one["key"], "", "NoExecute") for one in (OUT, ALSO)]
        self.assertEqual((seconds_borne(pod, taints[:1]), seconds_borne(pod, taints), seconds_borne(pod, [("third", "", "NoExecute")])), (10, 5, 0))

    def test_of_a_node_that_is_not_ready_is_borne_for_300_s_by_who_says_nothing(self):
        self.assertEqual(seconds_borne(self.make_pod("pod"), [(NOT_READY, "", "NoExecute")]), 300)
        self.assertIsNone(seconds_borne(self.make_pod("other", {"operator": "Exists"}), [(NOT_READY, "", "NoExecute"), ("out", "", "NoExecute")]))

    def test_says_of_pods_that_they_are_not_ready_where_their_node_is_not(self):
        pod, node = self.make_pod("pod", bearing(NOT_READY, 10)), self.make_node()
        set_condition(node, "Ready", "False")
        look_at_node(self.unspaced, [self.space], node)
        self.assertEqual(condition_of(pod, "Ready")["status"], "False")


class a_budget(played):
    def refused(self, name):
        """@returns the Status"""
        with self.assertRaises(refusal) as why:
            evict(self.space, name, EVICTION | {"metadata": {"name": name}})
        return why.exception.status, why.exception.headers

    def look(self):
        api_evictions.look_at_budget(self.space, self.budget)

    def test_that_nobody_has_counted_since_it_changed_lets_none_go_and_says_when_to_come_again(self):
        self.make_pod("pod")
        self.budget = self.make_budget(0)
        status, headers = self.refused("pod")
        self.assertEqual((headers, status["details"]["retryAfterSeconds"]), ({"Retry-After": "10"}, 10))
        self.assertIn("still being processed", status["details"]["causes"][0]["message"])
        self.look()
        evict(self.space, "pod", EVICTION | {"metadata": {"name": "pod"}})

    def test_counts_a_pod_again_that_was_let_go_and_is_not_deleted(self):
        for name in ("a", "b"):
            self.make_pod(name)
        self.budget = self.make_budget(1)
        self.look()
        with mock.patch.object(api_evictions, "disrupt", lambda *_: None):  # as when the server ends between the two
            evict(self.space, "a", EVICTION | {"metadata": {"name": "a"}})
        self.look()
        self.assertEqual((self.budget["status"]["disruptionsAllowed"], set(self.budget["status"]["disruptedPods"])), (0, {"a"}))
        self.refused("b")
        with mock.patch.object(api_evictions, "DELETION_TIMEOUT_S", -2):
            self.look()
        self.assertEqual((self.budget["status"]["disruptionsAllowed"], self.budget["status"]["disruptedPods"]), (1, {}))

    def test_of_shares_says_why_it_lets_none_go(self):
        pod = self.make_pod("pod")
        pod["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "job", "uid": "1", "controller": True}]
        self.budget = self.make_budget(0)
        self.look()
        self.budget["spec"] = self.budget["spec"] | {"minAvailable": "50%"}
        self.look()
        self.assertEqual(self.refused("pod")[0]["details"]["causes"][0]["message"], "The disruption budget budget does not allow evicting pods"
                         " currently because it failed sync: jobs.batch does not implement the scale subresource")


if __name__ == "__main__":
    ran = unittest.main(verbosity=2, exit=False).result
    write_counts(ran, os.environ.get("GTEST_OUTPUT", ""))
    sys.exit(0 if ran.wasSuccessful() else 1)
