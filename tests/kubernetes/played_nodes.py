"""Plays what stands behind an API server: controllers, garbage collector, scheduler and the kubelet of one node, without a container.

Level-triggered: one thread looks at all objects again and again. Pods on other nodes are let be. Of a container's command it knows `sh -c "exit N"`, which ends with N, and
`sh -c "sleep N"`, which goes on until its pod is to end. Pods with a node selector find no node.
"""

import secrets
import threading

from api_objects import is_over
from object_conditions import set_condition

NODE = "node-1"
PASS_S = 0.02
STARTED_AFTER, ENDED_AFTER = 2, 5  # passes


class played_nodes:
    """@param api whose objects it plays with"""

    def __init__(self, api):
        self.api = api
        self.ages = {}  # uid of a pod -> passes since it was made, was started, or was to end
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def run(self):
        while not self.is_over.wait(PASS_S):
            with self.api.lock:
                for space in list(self.api.spaces.values()):
                    self.look_at(space)
                self.api.controllers.look()
                self.api.look_at_namespaces()

    def look_at(self, space):
        for job in space.of("Job"):
            self.look_at_job(space, job)
        for pod in space.of("Pod"):
            self.look_at_pod(space, pod)
        for quota in space.of("ResourceQuota"):
            self.look_at_quota(space, quota)
        space.collect_garbage()

    def look_at_quota(self, space, quota):
        status = {"hard": quota["spec"]["hard"], "used": {"pods": str(sum(not is_over(one) for one in space.of("Pod")))}}
        if quota.get("status") != status:
            quota["status"] = status
            space.note("MODIFIED", "ResourceQuota", quota)

    # ---- Jobs

    def look_at_job(self, space, job):
        pods = [pod for pod in space.of("Pod") if controller_of(pod) == job["metadata"]["uid"]]
        there = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and not is_over(pod)]
        if job.get("status", {}).get("conditions") or "deletionTimestamp" in job["metadata"]:
            return
        limit = max(1, job["spec"].get("backoffLimit", 6))
        if any(pod["status"]["phase"] == "Succeeded" for pod in pods):
            self.set_condition(space, job, "Complete", there)
        elif sum(restarts_of(pod) for pod in there) + sum(pod["status"]["phase"] == "Failed" for pod in pods) >= limit:
            self.set_condition(space, job, "Failed", there)
        elif job["spec"].get("suspend"):
            self.end_all(space, there)
        elif len(there) < job["spec"].get("parallelism", 1):
            space.create("Pod", pod_of(job))

    def set_condition(self, space, job, kind, there):
        job.setdefault("status", {})["conditions"] = [{"type": kind, "status": "True"}]
        space.note("MODIFIED", "Job", job)
        self.end_all(space, there)

    def end_all(self, space, pods):
        for pod in pods:
            space.end(pod)

    # ---- Pods

    def look_at_pod(self, space, pod):
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        if spec.get("nodeName", NODE) != NODE:
            return
        self.ages[uid] = self.ages.get(uid, 0) + 1
        if "deletionTimestamp" in pod["metadata"]:
            if self.ages[uid] >= ENDED_AFTER:
                space.remove(pod)
        elif "nodeName" not in spec:
            self.schedule(space, pod)
        elif pod["status"]["phase"] == "Pending" and self.ages[uid] >= STARTED_AFTER:
            self.tell(space, pod, "Running", {"running": {}})
        elif pod["status"]["phase"] == "Running" and self.ages[uid] >= ENDED_AFTER:
            self.end_of_container(space, pod)

    def schedule(self, space, pod):
        if not spec_allows(pod):
            why = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
            if set_condition(pod, "PodScheduled", "False", "Unschedulable", why):
                space.note("MODIFIED", "Pod", pod)
            return
        pod["spec"]["nodeName"] = NODE
        space.note("MODIFIED", "Pod", pod)

    def tell(self, space, pod, phase, state):
        self.ages[pod["metadata"]["uid"]] = 0
        container = {"name": pod["spec"]["containers"][0]["name"], "restartCount": restarts_of(pod), "state": state}
        pod["status"] |= {"phase": phase, "podIP": "10.0.0.1", "containerStatuses": [container]}
        set_condition(pod, "Ready", str(phase == "Running"))
        space.note("MODIFIED", "Pod", pod)

    def end_of_container(self, space, pod):
        """If its command ends by itself. It is started again as its restartPolicy says."""
        words = pod["spec"]["containers"][0].get("command", [""])[-1].split()
        if words[:1] != ["exit"]:
            return
        code, policy = int(words[1]), pod["spec"].get("restartPolicy", "Always")
        ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        if policy == "Never" or (policy == "OnFailure" and code == 0):
            self.tell(space, pod, "Failed" if code else "Succeeded", ended)
            return
        self.tell(space, pod, "Running", {"running": {}})
        pod["status"]["containerStatuses"][0] |= {"restartCount": restarts_of(pod) + 1, "lastState": ended}
        space.note("MODIFIED", "Pod", pod)

    def on_end(self, going):
        """@returns whether something runs there that has to end first"""
        self.ages[going["metadata"]["uid"]] = 0
        return "nodeName" in going["spec"] and not is_over(going)


def spec_allows(pod):
    return not pod["spec"].get("nodeSelector")


def restarts_of(pod):
    return sum(one["restartCount"] for one in pod["status"].get("containerStatuses", []))


def controller_of(pod):
    return next((one["uid"] for one in pod["metadata"].get("ownerReferences", []) if one.get("controller")), None)


def pod_of(job):
    template, name = job["spec"]["template"], job["metadata"]["name"]
    labels = template.get("metadata", {}).get("labels", {}) | {"batch.kubernetes.io/job-name": name}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": "v1", "kind": "Pod", "spec": dict(template["spec"]),
            "metadata": {"name": f"{name}-{secrets.token_hex(3)}", "labels": labels, "ownerReferences": [owner]}}
