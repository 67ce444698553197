"""Nodes of many pods, as the API server hears of them: pods are scheduled, get their containers and run, and nothing runs in them.

The pods of Jobs are left to a small cluster, whose containers are real. Objects are as large as Kubernetes makes them: with the fields that
it notes who manages them (metadata.managedFields).
"""

import collections
import heapq
import itertools
import random
import threading
import time

from object_conditions import stamp
from pod_jobs import players_of

NODES = 100
SCHEDULED_S, STARTED_S, ENDED_S = (0.02, 0.3), (0.3, 1.5), (0.1, 0.5)  # least and most, each after what was before
HOSTS_LABEL = "app.kubernetes.io/component", "host"


def fields_of(value):
    """As FieldsV1 names them."""
    return {f"f:{key}": fields_of(one) for key, one in value.items()} if isinstance(value, dict) else {}


def is_of_host(pod):
    return HOSTS_LABEL in pod["metadata"].get("labels", {}).items()


class many_kubelets(players_of):
    """Who plays for pods of hosts, from when it is entered on. @param seed of how long things take"""

    def __init__(self, cluster, seed):
        super().__init__(cluster)
        self.random, self.numbers = random.Random(seed), itertools.count(1)
        self.due, self.changed = [], threading.Condition()  # (moment, number, what is done then, with which words)
        self.is_over = False
        self.thread = threading.Thread(target=self.keep_time, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with self.changed:
            self.is_over = True
            self.changed.notify_all()
        self.thread.join()

    # ---- time

    def later(self, bounds, do, *words):
        with self.changed:
            heapq.heappush(self.due, (time.monotonic() + self.random.uniform(*bounds), next(self.numbers), do, words))
            self.changed.notify_all()

    def next_due(self):
        """Blocks until something is. None: nothing is any more."""
        with self.changed:
            while not self.is_over:
                left_s = self.due[0][0] - time.monotonic() if self.due else None
                if left_s is not None and left_s <= 0:
                    return heapq.heappop(self.due)
                self.changed.wait(left_s)
        return None

    def keep_time(self):
        while found := self.next_due():
            _, _, do, words = found
            with self.cluster.api.lock:
                do(*words)

    # ---- what becomes of a pod

    def on_pod(self, space, made):
        if not is_of_host(made):
            super().on_pod(space, made)
            return
        number = next(self.numbers)
        made["spec"]["nodeName"] = f"node-{number % NODES}"
        self.later(SCHEDULED_S, self.schedule, space, made, f"10.{64 + (number >> 16)}.{number >> 8 & 255}.{number & 255}")

    def schedule(self, space, pod, address):
        self.tell(space, pod, "Pending", {"waiting": {"reason": "ContainerCreating"}})
        self.later(STARTED_S, self.start, space, pod, address)

    def start(self, space, pod, address):
        if "deletionTimestamp" not in pod["metadata"]:
            self.tell(space, pod, "Running", {"running": {"startedAt": stamp()}}, address)

    def tell(self, space, pod, phase, state, address=None, **more):
        if space.objects.get(("Pod", pod["metadata"]["name"])) is not pod:
            return
        is_ready = str(phase == "Running")
        conditions = [{"type": kind, "status": holds, "lastProbeTime": None, "lastTransitionTime": stamp()}
                      for kind, holds in (("PodReadyToStartContainers", is_ready), ("Initialized", "True"), ("Ready", is_ready),
                                          ("ContainersReady", is_ready), ("PodScheduled", "True"))]
        container = {"name": "dlrun", "image": pod["spec"]["containers"][0]["image"], "imageID": "sha256:" + "0" * 64, "ready": phase == "Running",
                     "started": phase == "Running", "restartCount": 0, "state": state, "lastState": {}}
        addresses = {"podIP": address, "podIPs": [{"ip": address}]} if address else {}
        pod["status"] = {"phase": phase, "conditions": conditions, "hostIP": "10.0.0.1", "startTime": stamp(), "qosClass": "Guaranteed",
                         "containerStatuses": [container], **addresses, **more}
        pod["metadata"]["managedFields"] = [
            {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": stamp(), "fieldsType": "FieldsV1", "fieldsV1": fields_of(of)}
            for manager, of in (("dlrun", {"spec": pod["spec"]}), ("kubelet", {"status": pod["status"]}))]
        space.note("MODIFIED", "Pod", pod)

    def on_end(self, space, going):
        if not is_of_host(going):
            return super().on_end(space, going)
        self.later(ENDED_S, space.remove, going)
        return True

    # ---- what befalls pods

    def kill(self, space, pods):
        """At once: of two one is deleted and goes, and the container of the other has failed, as when its node is short of something."""
        with self.cluster.api.lock:
            for pod, is_deleted in zip(pods, itertools.cycle((True, False))):
                if is_deleted:
                    space.end(pod)
                else:
                    self.tell(space, pod, "Failed", {"terminated": {"exitCode": 137, "reason": "Error"}}, reason="Evicted")

    def kill_unseen(self, space, pods):
        """The same while nobody is told: those that are deleted are gone at once."""
        self.kill(space, pods)
        with self.cluster.api.lock:
            for pod in pods:
                if "deletionTimestamp" in pod["metadata"]:
                    space.remove(pod)


def by_slot(pods):
    """Number of a slot -> its pods."""
    found = collections.defaultdict(list)
    for one in pods:
        found[int(one["metadata"]["labels"]["dlrun/slot"])].append(one)
    return found
