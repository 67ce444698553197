"""Nodes of a small cluster: where pods are, and what nodes do to them."""

import collections
import threading

from node_fit import gpus_of, node_kind, why_not

NODES = 4


def name_of(node):
    return f"node-{node}"


def kept_off(made):
    """Names of nodes, by the node affinity of a pod, of the form that dlrun writes."""
    terms = made["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
    return [one["values"][0] for term in terms["nodeSelectorTerms"] for one in term["matchFields"]
            if (one["key"], one["operator"]) == ("metadata.name", "NotIn")]


class pod_nodes:
    """@param cluster whose pods these are; its lock guards all here"""

    def __init__(self, cluster):
        self.cluster, self.count = cluster, NODES
        self.cordoned, self.lost = set(), set()
        self.variables = {}  # node -> what containers have there, as if its processor were another one
        self.has_image, self.waiting = True, []  # Pods that could not begin yet
        self.kinds = collections.defaultdict(node_kind)

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
        if node in self.cordoned and not is_of_job:
            return "node(s) were unschedulable"
        if name_of(node) in kept_off(made):
            return "node(s) didn't match Pod's node affinity/selector"
        kind = self.kinds[node]
        return why_not(kind, made["spec"], kind.gpus - sum(gpus_of(one.spec) for one in self.pods_on(node)))

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
        """As `kubectl drain`: it takes no pods any more, and those there end in order. @returns those"""
        with self.cluster.lock:
            self.cordoned.add(node)
            going = self.pods_on(node)
        for one in going:
            threading.Thread(target=one.delete, daemon=True).start()
        return going

    def cordon(self, *nodes):
        with self.cluster.lock:
            self.cordoned.update(nodes)

    def uncordon(self, *nodes):
        with self.cluster.lock:
            self.cordoned.difference_update(nodes)
            self.look_at_waiting()

    def lose(self, node):
        """With all that runs and is stored there, and nobody says so. @returns the pods that were there"""
        with self.cluster.lock:
            self.lost.add(node)
            gone = self.pods_on(node)
        for one in gone:
            one.lose()
        return gone

    def evict(self, node):
        """As Kubernetes does when it hears nothing of the node any more: its pods are to end, and nobody says that they have."""
        with self.cluster.lock:
            going = [one for one in self.cluster.pods if one.node == node and one.is_cut_off and one.phase == "Running"]
        for one in going:
            self.cluster.api.space.end(one.object)

    def replace(self, node):
        """As when somebody deletes the Node: its pods are gone with it. Another one comes in its place."""
        with self.cluster.lock:
            self.lost.discard(node)
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
