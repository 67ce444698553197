"""Nodes that drive their pods out, for api_cases. The Nodes are made here and have no kubelet; a cloud provider may take them away."""

import contextlib
import time

from api_asker import expect, wait_for
from api_eviction_cases import disruption_of
from api_scene import CASES, case

TAINT = {"key": "dlrun.test/out", "value": "yes", "effect": "NoExecute"}
BORNE_S = 1


@contextlib.contextmanager
def own_node(at, *taints):
    """@returns its name"""
    name = f"{at.server.name_space}-{at.name()}"
    at.server.create("Node", name, {"spec": {"taints": list(taints)}}).expect(201)
    try:
        yield name
    finally:
        at.server.delete("Node", name)


def pod_on(at, node, **toleration):
    """@returns its name"""
    bears = [{"key": TAINT["key"], "operator": "Exists", "effect": "NoExecute", **toleration}]
    spec = at.pod() | {"nodeName": node, "tolerations": bears if toleration else []}
    spec.pop("nodeSelector")
    return at.server.create("Pod", at.name(), {"spec": spec}).expect(201)["metadata"]["name"]


@case(CASES)
def taint_drives_out_who_does_not_bear_it(at):
    """a taint NoExecute deletes pods of its node (DeletionByTaintManager): at once, after the tolerationSeconds, or never where they bear it"""
    with own_node(at, TAINT) as node:
        ever, begin = pod_on(at, node, value=""), time.monotonic()
        names = [pod_on(at, node), pod_on(at, node, tolerationSeconds=BORNE_S)]
        for name in names:
            gone = wait_for(lambda one=name: "deletionTimestamp" in (found := at.server.get("Pod", one).expect(200))["metadata"] and found, "it is driven out")
            expect(disruption_of(gone) == ("True", "DeletionByTaintManager"), f"its status is {gone['status']}")
        expect(time.monotonic() - begin >= BORNE_S, "the second did not stay as long as it bears")
        expect("deletionTimestamp" not in at.server.get("Pod", ever).expect(200)["metadata"], "the third goes too")
        for name in (ever, *names):
            at.server.delete("Pod", name, gracePeriodSeconds=0).expect(200)


@case(CASES)
def node_that_is_not_ready_is_tainted(at):
    """a node that is not ready has taints not-ready, one that is silent unreachable, one that is cordoned unschedulable; one that is ready none"""
    with own_node(at) as node:
        for status, key in (("False", "not-ready"), ("Unknown", "unreachable"), ("True", None)):
            at.server.patch_status("Node", node, {"conditions": [{"type": "Ready", "status": status, "reason": "Tried", "message": "by a test"}]}).expect(200)
            wanted = {(f"node.kubernetes.io/{key}", effect) for effect in ("NoSchedule", "NoExecute")} if key else set()
            wait_for(lambda these=wanted: taints_of(at, node) == these, f"its taints are {wanted}")
        at.server.patch("Node", node, {"spec": {"unschedulable": True}}).expect(200)
        wait_for(lambda: taints_of(at, node) == {("node.kubernetes.io/unschedulable", "NoSchedule")}, "it is cordoned")


def taints_of(at, node):
    return {(one["key"], one["effect"]) for one in at.server.get("Node", node).expect(200)["spec"].get("taints", [])}
