"""What Kubernetes does with the objects of `dlrun manifests`, as small as tests need it, for lack of a cluster.

Jobs fail, are suspended and are complete as the Job controller does it; other pods are made through the API server. What kubelets
do is told there, unless their node is dead. Pods are on nodes, which are drained as budgets let it, tainted, lost and removed when a test
says so. Containers have the limits of memory of their manifests, by cgroups (memory_cgroups); where none can be made, as in a container of
a CI without a cgroup that can be written to, they run without limits, stderr says so, and tests of limits alone are left out. What
NetworkPolicies do not let through is lost (network_policies): always, so each test of pods runs under those of its manifests. What is not
here: seccomp, limits of processors and disks.
"""

import base64
import copy
import pathlib
import shutil
import sys
import threading

import yaml

import images
from memory_cgroups import memory_cgroups, no_cgroups
from network_policies import network_policies
from played_pod import WRITABLE_BY_GROUP, pod
from played_probes import SPEEDS
from pod_nodes import name_of, number_of, pod_nodes


PODS_MAX = 1000  # with room for all
JOB_UID = "batch.kubernetes.io/controller-uid"


def read_manifests(text):
    """(kind, name) -> object."""
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.load_all(text, yaml.CSafeLoader)}


class cluster:
    """Pods of the Jobs of some manifests, each at an address of its own, which is a host of `net_hosts`, and on one of four nodes; gone at
    the end."""

    def __init__(self, hosts, folder, program, pauses):
        """Pods are of an image of that program. Raises no_image where none can be built, no_namespaces where packets cannot be filtered."""
        self.api = None  # what plays the API server, if anybody does
        self.hosts, self.folder, self.image, self.pauses = hosts, folder, images.root_of(program), pauses
        self.gpu_module = None  # a file: what NVIDIA's container runtime brings into containers with GPUs, if nodes have any
        self.clock_library = pathlib.Path(program).with_name("libdlrun_other_clock.so")
        self.free_hosts, self.made = list(hosts.names), 0
        self.probe_speeds = dict(SPEEDS)  # by which probes are faster than their manifests say
        self.parted, self.unreachable = set(), set()  # by network policies: hosts; names of hosts whose next pods will be
        self.objects, self.pods, self.jobs_over = {}, [], {}
        self.succeeded = {}  # name of a Job -> the first of its pods that did
        self.room, self.pending = {}, []  # name of a Job -> so many of its pods have room; Pods that have none
        self.nodes, self.policies = pod_nodes(self), network_policies(hosts)
        self.memory = self.why_no_memory = None  # who limits it, or why nobody can
        self.lock, self.is_closing = threading.RLock(), False
        folder.mkdir()

    def __enter__(self):
        try:
            self.memory = memory_cgroups(f"{self.hosts.prefix}pods")
        except no_cgroups as why:
            self.why_no_memory = why
            print(f"pods have no limits of memory here: {why}", file=sys.stderr)
        return self

    def __exit__(self, *_):
        with self.lock:  # no pod is being made
            self.is_closing = True
        for one in self.pods:
            with one.lock:
                one.is_deleted = True
            if one.container and one.container.poll() is None:
                one.kill()
        for one in self.pods:
            one.thread.join()
            shutil.rmtree(one.folder, ignore_errors=True)
        if self.memory:
            self.memory.remove()

    # ---- what is in it

    def apply(self, text):
        """All objects but Jobs, which start() makes pods of."""
        self.objects.update(read_manifests(text))

    def claim(self, name):
        folder = self.folder / "claims" / name
        with self.lock:  # several pods ask for it at once
            if not folder.exists():
                folder.mkdir(parents=True)
                folder.chmod(WRITABLE_BY_GROUP)
        return folder

    def files_of(self, volume):
        """Of a Secret or a ConfigMap."""
        if "secret" in volume:
            found = self.objects["Secret", volume["secret"]["secretName"]]
            plain = {name: text.encode() for name, text in found.get("stringData", {}).items()}
            return plain | {name: base64.b64decode(text) for name, text in found.get("data", {}).items()}
        return {name: text.encode() for name, text in self.objects["ConfigMap", volume["configMap"]["name"]]["data"].items()}

    def write_names(self, root):
        """The name service: of each headless Service the addresses of the pods that it selects and that are not over."""
        lines = ["127.0.0.1 localhost"]
        for (kind, name), one in self.objects.items():
            if kind == "Service":
                assert one["spec"]["clusterIP"] == "None" and one["spec"]["publishNotReadyAddresses"]
                wanted = one["spec"]["selector"].items()
                lines += [f"{self.hosts.address(pod.host)} {name}" for pod in self.pods
                          if wanted <= pod.labels.items() and pod.phase == "Running"]
        (root / "etc/host.conf").write_text("multi on\n")  # a name may have several addresses, as in DNS
        new = root / "etc/hosts.new"
        new.write_text("\n".join(lines) + "\n")
        new.replace(root / "etc/hosts")

    def add(self, new):
        """A pod, before its first container: it has a name, and policies are enforced there, when that begins."""
        with self.lock:
            self.pods.append(new)
            self.renew_network()

    def renew_network(self):
        """For the pods that there are: whom each finds by its name, and what may come there and go from there."""
        there = [one for one in self.pods if one.phase == "Running"]
        for one in there:
            self.write_names(one.folder / "root")
        self.policies.renew(self.objects, {one.host: one.labels for one in there})

    # ---- Jobs

    def set_condition(self, name, kind):
        """Of a Job: it is over, or suspended."""
        self.objects["Job", name]["status"] = {"conditions": [{"type": kind, "status": "True"}]}

    def condition(self, name):
        """"Complete" or "Failed"; None: it is not over."""
        kind = self.told_condition(name)
        return None if kind == "Suspended" else kind

    def told_condition(self, name):
        [one] = self.objects["Job", name].get("status", {}).get("conditions") or [None]
        return one and one["type"]

    def on_job_changed(self, name):
        """Somebody has patched it."""
        with self.lock:
            job, was = self.objects["Job", name], self.told_condition(name)
            if job["spec"].get("suspend") and was is None:
                self.set_condition(name, "Suspended")
                self.end_pods(name)
            elif not job["spec"].get("suspend") and was == "Suspended":
                job["status"] = {}
                self.release(name)
            if name not in self.succeeded and self.active(name) > job["spec"]["parallelism"]:
                self.drop_pending(name)
        self.look_at_limit(name)

    def release(self, name):
        """It is suspended no more. A pod of before that has not ended may have to, first."""
        before = self.pods_of(name)
        if before and self.objects["Job", name]["spec"].get("podReplacementPolicy") == "Failed":
            return
        for one in before:
            one.is_replaced = True
        self.start(name)

    def look_at_limit(self, name):
        """Of restarts in place, of all its pods that there are: with restartPolicy OnFailure a Job fails when they are as many as its
        backoffLimit, and one where that is 0; or when more of its pods have failed."""
        with self.lock:
            job = self.objects.get(("Job", name))
            if job is None or self.condition(name) or self.is_closing:
                return
            restarts = sum(one.restarts for one in self.pods_of(name))
            failed = sum(one.group == name and one.phase == "Failed" for one in self.pods)
            if restarts >= max(1, job["spec"]["backoffLimit"]) or failed > job["spec"]["backoffLimit"]:
                self.set_condition(name, "Failed")
                self.end_pods(name)

    def active(self, name):
        """Its pods that are not over nor going, whether they run or not."""
        there = [one for one in self.pods if one.group == name and one.phase == "Running" and "deletionTimestamp" not in one.object["metadata"]]
        return len(there) + sum(job["metadata"]["name"] == name for _, job in self.pending)

    def drop_pending(self, name):
        """Those go first when fewer pods are wanted."""
        for made, job in list(self.pending):
            if job["metadata"]["name"] == name:
                self.pending.remove((made, job))
                self.api.space.remove(made)

    def end_pods(self, name):
        self.drop_pending(name)
        for one in self.pods_of(name):
            threading.Thread(target=one.delete, daemon=True).start()

    def start(self, name):
        """Makes the pods of a Job. @returns them"""
        job = self.objects["Job", name]
        assert not job["spec"].get("suspend"), name
        assert job["spec"].get("completionMode") != "Indexed", "of such a Job pods have numbers"
        return [self.make_pod(job) for _ in range(job["spec"]["parallelism"])]

    def make_pod(self, job):
        with self.lock:
            self.made += 1
            template, name = copy.deepcopy(job["spec"]["template"]), f"{job['metadata']['name']}-pod{self.made}"
            made = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | {"name": name}, "spec": template["spec"]}
            if self.api:
                owner = self.api.space.there("Job", job["metadata"]["name"])["metadata"]["uid"]
                made["metadata"]["labels"] |= {JOB_UID: owner}
                made["metadata"]["ownerReferences"] = [{"kind": "Job", "name": job["metadata"]["name"], "uid": owner, "controller": True}]
                self.objects["Pod", name] = made
                self.api.space.note("ADDED", "Pod", made)
            if len(self.pods_of(job["metadata"]["name"])) >= self.room.get(job["metadata"]["name"], PODS_MAX):
                made["status"] = {"phase": "Pending"}
                self.pending.append((made, job))
                return None
            return self.run_pod(made, job)

    def run_pod(self, made, job=None):
        """At an address of its own, on a node of its own choice where it has none."""
        with self.lock:
            if "nodeName" not in made["spec"]:
                node = self.nodes.pick(made, is_of_job=job is not None)
                assert node is not None, self.nodes.why_none(made)
                made["spec"]["nodeName"] = name_of(node)
            host = self.free_hosts.pop(0)
            if made["spec"].get("hostname") in self.unreachable:
                self.part(host)
            return pod(self, made, host, number_of(made["spec"]["nodeName"]), job)

    def job_of(self, made):
        """None: somebody else made that pod."""
        owners = [owner["name"] for owner in made["metadata"].get("ownerReferences", []) if owner["kind"] == "Job"]
        return self.objects["Job", owners[0]] if owners else None

    def part(self, host):
        """A network policy cuts it off."""
        self.parted.add(host)
        self.hosts.part_from_all(host)

    def heal(self):
        """There is no such policy any more."""
        with self.lock:
            self.unreachable.clear()
            while self.parted:
                self.hosts.heal(self.parted.pop())

    # ---- Pods, as the API server tells them

    def on_pod_made(self, made):
        """Through the API."""
        if not self.is_closing:
            self.nodes.place(made)

    def on_pod_to_end(self, going):
        """@returns whether somebody tells when it has ended"""
        [one] = [one for one in self.pods if one.object is going] or [None]
        if one is None or one.phase != "Running":
            return False
        if one.is_cut_off:
            self.on_pod_deleted(one)
        else:
            threading.Thread(target=one.end, daemon=True).start()
        return True

    def on_pod_over(self, over):
        """On the thread of the pod. One of a Job that has failed is replaced, on another host; but not where its Job is over."""
        with self.lock:
            if self.is_closing:
                return
            self.free_hosts.append(over.host)
            if self.api and "deletionTimestamp" in over.object["metadata"]:
                self.api.space.remove(over.object)
            if over.job:
                self.on_job_pod_over(over)
            if self.api:
                self.nodes.look_at_waiting()
            self.renew_network()

    def on_job_pod_over(self, over):
        name = over.job["metadata"]["name"]
        self.look_at_limit(name)
        if over.phase == "Succeeded":
            self.succeeded.setdefault(name, over)
        elif name not in self.succeeded:
            self.replace(over)
        self.look_at_success(name)

    def look_at_success(self, name):
        """A Job without completions is complete when one of its pods has succeeded and all have ended."""
        job = self.objects.get(("Job", name))
        if name not in self.succeeded or name in self.jobs_over or (job and "completions" not in job["spec"] and self.active(name)):
            return
        self.jobs_over[name] = self.succeeded[name]
        if job and not self.condition(name):
            self.set_condition(name, "Complete")

    def on_pod_deleted(self, deleted):
        """It may run for as long as its grace, and another one begins beside it, but where the Job does not want that."""
        if deleted.job is None:
            return
        policy = deleted.job["spec"].get("podReplacementPolicy", "TerminatingOrFailed")
        with self.lock:
            if policy != "Failed" and not self.is_closing and deleted.job["metadata"]["name"] not in self.succeeded:
                self.replace(deleted)

    def replace(self, gone):
        """Once; but not where the Job is gone, or suspended."""
        job = self.objects.get(("Job", gone.job["metadata"]["name"]))
        if not gone.is_replaced and job is not None and not job["spec"].get("suspend") and not self.condition(job["metadata"]["name"]):
            gone.is_replaced = True
            self.make_pod(gone.job)

    def pods_of(self, group):
        """Those that are not over, nor on a dead node."""
        with self.lock:
            return [one for one in self.pods if one.group == group and one.phase == "Running" and not one.is_cut_off]
