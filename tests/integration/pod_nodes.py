"""Nodes of a small cluster: where pods are, and what nodes do to them."""

import collections
import threading
import time

from api_evictions import API_VERSION, disrupt, evict
from api_objects import is_over, refusal
from api_taints import UNSCHEDULABLE, taints_of
from node_fit import gpus_of, node_kind, why_not
from object_conditions import set_condition

NODES = 4
TOO_MANY = 429
EVICTED_AGAIN_S = 0.1  # of `kubectl drain`: 5 s


def name_of(node):
    return f"node-{node}"


def number_of(name):
    return int(name.rpartition("-")[2])


def kept_off(made):
    """Names of nodes, by the node affinity of a pod, of the form that dlrun writes."""
    terms = made["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
    return [one["values"][0] for term in terms["nodeSelectorTerms"] for one in term["matchFields"]
            if (one["key"], one["operator"]) == ("metadata.name", "NotIn")]


def objects_of(taints):
    """@param taints (key, value, effect)"""
    return [{"key": key, "value": value, "effect": effect} for key, value, effect in taints]


class pod_nodes:
    """What the API server knows of them are Nodes there, with taints, cordons and conditions.
    @param cluster whose pods these are; its lock guards all here"""

    def __init__(self, cluster):
        self.cluster, self.count = cluster, NODES
        self.lost = set()
        self.refused = collections.defaultdict(list)  # name of a pod -> why budgets did not let it go
        self.variables = {}  # node -> what containers have there, as if its processor were another one
        self.has_image, self.waiting = True, []  # Pods that could not begin yet
        self.kinds = collections.defaultdict(node_kind)

    def object_of(self, node):
        """Its Node."""
        space, name = self.cluster.api.unspaced, name_of(node)
        if ("Node", name) not in space.objects:
            space.create("Node", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
                                  "spec": {"taints": objects_of(self.kinds[node].taints)},
                                  "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        return space.objects["Node", name]

    def change(self, node, **spec):
        """Of its Node."""
        with self.cluster.lock:
            self.object_of(node)["spec"] |= spec
            self.on_changed(node)

    def on_changed(self, node):
        self.cluster.api.unspaced.note("MODIFIED", "Node", self.object_of(node))
        self.cluster.api.controllers.look()
        self.look_at_waiting()

    @property
    def cordoned(self):
        return {node for node in range(self.count) if self.object_of(node)["spec"].get("unschedulable")}

    def pick(self, made, is_of_job=False):
        """The node with the fewest pods; None: none takes it. Pods of Jobs are taken by those that are cordoned too."""
        there = [node for node in range(self.count) if not self.why_not(node, made, is_of_job)]
        return min(there, key=lambda node: (self.has_kin(node, made), len(self.pods_on(node)))) if there else None

    def has_kin(self, node, made):
        """Whether a pod is there from which it is to be apart, where there is room."""
        terms = made["spec"].get("affinity", {}).get("podAntiAffinity", {}).get("preferredDuringSchedulingIgnoredDuringExecution", [])
        wanted = [term["podAffinityTerm"]["labelSelector"]["matchLabels"].items() for term in terms]
        return any(labels <= one.labels.items() for labels in wanted for one in self.pods_on(node))

    def why_not(self, node, made, is_of_job=False):
        """That node takes no such pod; "" where it does."""
        if node in self.lost:
            return "node(s) had untolerated taint {node.kubernetes.io/unreachable: }"
        if self.object_of(node)["spec"].get("unschedulable") and not is_of_job:
            return "node(s) were unschedulable"
        if name_of(node) in kept_off(made):
            return "node(s) didn't match Pod's node affinity/selector"
        kind, taints = self.kinds[node], [one for one in taints_of(self.object_of(node)) if one[0] != UNSCHEDULABLE]
        return why_not(kind.labels, taints, made["spec"], kind.gpus - sum(gpus_of(one.spec) for one in self.pods_on(node)))

    def why_none(self, made):
        """In the words of the scheduler."""
        reasons = collections.Counter(self.why_not(node, made) for node in range(self.count))
        told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if reason))
        return f"0/{self.count} nodes are available: {told or 'no address is left'}."

    def pods_on(self, node):
        """Those that are not over."""
        return [one for one in self.cluster.pods if one.node == node and one.phase == "Running" and not one.is_lost]

    # ---- what happens to them

    def drain(self, node):
        """As `kubectl drain`: it takes no pods any more, and those there are evicted, each when its budget lets it go. Blocks until they are
        gone. @returns those"""
        self.cordon(node)
        with self.cluster.lock:
            going = self.pods_on(node)
        asking = [threading.Thread(target=self.evict_in_the_end, args=(one,), daemon=True) for one in going]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
        return going

    def evict_in_the_end(self, one):
        while not self.try_eviction(one):
            time.sleep(EVICTED_AGAIN_S)  # of a client; whoever waits for what comes of it polls
        while self.is_there(one) and not one.is_cut_off:
            time.sleep(EVICTED_AGAIN_S)

    def is_there(self, one):
        """As the API server says."""
        return not self.cluster.is_closing and self.cluster.objects.get(("Pod", one.name)) is one.object

    def try_eviction(self, one):
        """@returns whether it is to go"""
        with self.cluster.lock:
            if not self.is_there(one):
                return True
            if self.cluster.api.is_stopped:
                return False
            try:
                evict(self.cluster.api.space, one.name, {"apiVersion": API_VERSION, "kind": "Eviction", "metadata": {"name": one.name}})
            except refusal as why:
                assert why.code == TOO_MANY, why
                self.refused[one.name].append(why.status["details"]["causes"][0]["message"])
                return False
            return True

    def cordon(self, *nodes):
        for node in nodes:
            self.change(node, unschedulable=True)

    def uncordon(self, *nodes):
        for node in nodes:
            self.change(node, unschedulable=False)

    def taint(self, node, *taints):
        """From now on it has these and no others. @param taints (key, value, effect)"""
        self.change(node, taints=objects_of(taints))

    def set_ready(self, node, status):
        """What its kubelet says of it: "True" or "False"; "Unknown": nothing any more."""
        with self.cluster.lock:
            set_condition(self.object_of(node), "Ready", status)
            for one in self.pods_on(node) if status == "True" else ():
                one.tell(one.state)
            self.on_changed(node)

    def lose(self, node):
        """With all that runs and is stored there, and nobody says so. @returns the pods that were there"""
        with self.cluster.lock:
            self.lost.add(node)
            gone = self.pods_on(node)
        for one in gone:
            one.lose()
        return gone

    def evict(self, node):
        """As the taint manager does when nothing was heard of the node for long: its pods are to end, and nobody says that they have."""
        with self.cluster.lock:
            for one in self.cluster.pods:
                if one.node == node and one.is_cut_off and one.phase == "Running":
                    disrupt(self.cluster.api.space, one.object, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")

    def replace(self, node):
        """As when somebody deletes the Node: its pods are gone with it. Another one comes in its place."""
        with self.cluster.lock:
            self.lost.discard(node)
            self.cluster.api.unspaced.remove(self.object_of(node), "Node")
            gone = [one for one in self.cluster.pods if one.node == node and one.is_lost and one.phase == "Running"]
            for one in gone:
                one.phase = "Failed"
                self.cluster.hosts.set_link(one.host, "up")
                self.cluster.api.space.remove(one.object)
                self.cluster.on_pod_over(one)
            self.look_at_waiting()

    def become(self, kinds):
        """What nodes tell of themselves from now on. @param kinds node -> node_kind"""
        with self.cluster.lock:
            for node, kind in kinds.items():
                self.kinds[node] = kind
                self.taint(node, *kind.taints)

    # ---- kubelets whose API server tells something else than before

    def look_again(self):
        """A pod that it does not tell of ends, in order; one that does not run begins, on its node."""
        with self.cluster.lock:
            told = {one["metadata"]["uid"]: one for (kind, _), one in list(self.cluster.objects.items()) if kind == "Pod" and not is_over(one)}
            for one in [one for one in self.cluster.pods if one.phase == "Running"]:
                one.take(told.pop(one.object["metadata"]["uid"], None))
            self.waiting = [made for made in told.values() if "nodeName" not in made["spec"]]
            for made in told.values():
                if "deletionTimestamp" in made["metadata"]:
                    self.cluster.api.space.remove(made)
                elif "nodeName" in made["spec"] and number_of(made["spec"]["nodeName"]) not in self.lost:
                    self.cluster.run_pod(made, self.cluster.job_of(made))
            self.look_at_waiting()

    # ---- pods that cannot begin

    def spoil_image(self):
        self.has_image = False

    def mend_image(self):
        with self.cluster.lock:
            self.has_image = True
            self.look_at_waiting()

    def place(self, made):
        self.waiting.append(made)
        self.look_at_waiting()

    def look_at_waiting(self):
        """Those that can begin do so; of the others it is told why they cannot."""
        for made in list(self.waiting):
            if self.cluster.objects.get(("Pod", made["metadata"]["name"])) is not made:
                self.waiting.remove(made)
            elif not self.cluster.free_hosts or self.pick(made) is None:
                self.say_why(made, {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                                    "message": self.why_none(made)}]})
            elif not self.has_image:
                waits = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "dlrun"'}
                self.say_why(made, {"containerStatuses": [{"name": "dlrun", "restartCount": 0, "state": {"waiting": waits}}]})
            else:
                self.waiting.remove(made)
                self.cluster.run_pod(made)

    def say_why(self, made, status):
        made["status"] = {"phase": "Pending"} | status
        self.cluster.api.space.note("MODIFIED", "Pod", made)
