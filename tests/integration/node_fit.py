"""What the scheduler of Kubernetes compares of a pod and a node, as far as pods of dlrun ask for it: labels, taints and GPUs."""

GPU = "nvidia.com/gpu"
HARD_EFFECTS = ("NoSchedule", "NoExecute")


class node_kind:
    """What a node tells of itself; a device plugin on it of its GPUs."""

    def __init__(self, labels=(), taints=(), gpus=0):
        """@param taints (key, value, effect)"""
        self.labels, self.taints, self.gpus = dict(labels), list(taints), gpus


def gpus_of(spec):
    """That the containers of a pod are given."""
    return sum(int(one.get("resources", {}).get("limits", {}).get(GPU, 0)) for one in spec["containers"])


def bears(toleration, taint):
    """A toleration without a key or an effect bears all."""
    key, value, effect = taint
    is_its = toleration.get("operator", "Equal") == "Exists" or toleration.get("value", "") == value
    return (toleration.get("key") or key) == key and is_its and (toleration.get("effect") or effect) == effect


def why_not(labels, taints, spec, gpus_left):
    """Why a node takes no such pod, in the words of the scheduler; "" where it does."""
    if not spec.get("nodeSelector", {}).items() <= labels.items():
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in taints:
        if taint[2] in HARD_EFFECTS and not any(bears(one, taint) for one in spec.get("tolerations", ())):
            return f"node(s) had untolerated taint {{{taint[0]}: {taint[1]}}}"
    return f"Insufficient {GPU}" if gpus_of(spec) > gpus_left else ""
