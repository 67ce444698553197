"""Nodes as two controllers of Kubernetes see them: which taints a node has that is not ready, and which pods a taint drives out."""

from api_evictions import disrupt
from node_fit import bears
from object_conditions import condition_of, set_condition, stamp

NOT_READY, UNREACHABLE, UNSCHEDULABLE = (f"node.kubernetes.io/{what}" for what in ("not-ready", "unreachable", "unschedulable"))
KEY_OF = {"False": NOT_READY, "Unknown": UNREACHABLE}  # by the status of the condition Ready
EFFECTS = ("NoSchedule", "NoExecute")
DEFAULT_S = 300  # that admission lets a pod stay on such a node whose pod says nothing of it


def taint_of(one):
    """As node_fit has it."""
    return one["key"], one.get("value", ""), one["effect"]


def taints_of(node):
    return [taint_of(one) for one in node.get("spec", {}).get("taints", ())]


# ---- the node lifecycle controller

def look_at_node(unspaced, spaces, node):
    """Its taints follow its condition and its cordon; its pods are not ready while it is not."""
    ready = condition_of(node, "Ready").get("status")
    wanted = [(KEY_OF[ready], effect) for effect in EFFECTS] if ready in KEY_OF else []
    if node["spec"].get("unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    there = node["spec"].get("taints", [])
    kept = [one for one in there if one["key"] not in (NOT_READY, UNREACHABLE, UNSCHEDULABLE) or (one["key"], one["effect"]) in wanted]
    known = {(one["key"], one["effect"]) for one in kept}
    after = kept + [{"key": key, "effect": effect} | ({"timeAdded": stamp()} if effect == "NoExecute" else {})
                    for key, effect in wanted if (key, effect) not in known]
    if after != there:
        node["spec"]["taints"] = after
        unspaced.note("MODIFIED", "Node", node)
    if ready in KEY_OF:
        for space, pod in pods_on(spaces, node):
            if condition_of(pod, "Ready").get("status") == "True":
                set_condition(pod, "Ready", "False", "NodeNotReady")
                space.note("MODIFIED", "Pod", pod)


def pods_on(spaces, node):
    """@returns [(space, pod)]"""
    return [(space, pod) for space in spaces for pod in space.of("Pod") if pod["spec"].get("nodeName") == node["metadata"]["name"]]


# ---- the taint manager

def seconds_borne(pod, taints):
    """How long the pod stays beside taints of effect NoExecute: for ever (None), or 0 where it does not bear one of them."""
    tolerations = [*pod["spec"].get("tolerations", ())]
    for key in (NOT_READY, UNREACHABLE):
        if not any(bears(one, (key, "", "NoExecute")) for one in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": DEFAULT_S})
    used = [next((one for one in tolerations if bears(one, taint)), None) for taint in taints]
    if None in used:
        return 0
    return min((max(0, one["tolerationSeconds"]) for one in used if "tolerationSeconds" in one), default=None)


class taint_manager:
    """Deletes pods in time. What it has planned of a pod stays, whatever taints come beside, until the pod bears all for ever or one not."""

    def __init__(self):
        self.ends = {}  # uid of a pod -> when it is to be deleted

    def look_at(self, nodes, spaces, now):
        """@param now seconds of any clock"""
        seen = set()
        for node in nodes:
            taints = [one for one in taints_of(node) if one[2] == "NoExecute"]
            for space, pod in pods_on(spaces, node) if taints else ():
                if "deletionTimestamp" not in pod["metadata"] and self.is_due(pod, seconds_borne(pod, taints), now, seen):
                    disrupt(space, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        self.ends = {uid: end for uid, end in self.ends.items() if uid in seen}

    def is_due(self, pod, borne_s, now, seen):
        if borne_s is None:
            return False
        uid = pod["metadata"]["uid"]
        seen.add(uid)
        return borne_s == 0 or self.ends.setdefault(uid, now + borne_s) <= now
