"""What Kubernetes does with the objects of `dlrun manifests`, as small as tests need it, for lack of a cluster.

A pod is a network namespace of `net_hosts` and a folder; its container has the files of an image of scripts/build_image and no others,
mounts, processes and a name of its own, no rights, and runs as the user that the manifest names, on a root that it cannot write to, with
a token of its service account where the manifest wants one. Jobs fail, are suspended and are complete as the Job controller does it; other pods are made through the API server. What kubelets
do is told there, unless their node is dead. What is not here: seccomp, limits of memory and processor, a scheduler, network
policies, probes.
"""

import base64
import contextlib
import copy
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import yaml

import containers
from waiting import PATIENCE_S, wait_until

FIRST_BACK_OFF_S, BACK_OFF_MAX_S = 0.1, 1  # of Kubernetes: 10 s and 5 minutes
POLL_S = 0.05
ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
WRITABLE_BY_GROUP = 0o2777  # as the kubelet makes folders for fsGroup


def read_manifests(text):
    """(kind, name) -> object."""
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text)}


def expanded(word, variables):
    """As Kubernetes puts variables into a command: $(NAME), and $$ for $."""
    return re.sub(r"\$\$|\$\((\w+)\)", lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), word)


def nodes_kept_off(made):
    """By the node affinity of a pod, of the form that dlrun writes."""
    terms = made["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
    return [one["values"][0] for term in terms["nodeSelectorTerms"] for one in term["matchFields"]
            if (one["key"], one["operator"]) == ("metadata.name", "NotIn")]


class pod:
    """One pod, as an object of the API server, from when it is made until its containers do not run any more.
    @param job that made it; None: somebody else did"""

    def __init__(self, cluster, made, host, job=None):
        self.cluster, self.object, self.job, self.host = cluster, made, job, host
        self.name, self.spec, self.labels = made["metadata"]["name"], made["spec"], made["metadata"]["labels"]
        self.host_name = self.spec.get("hostname", self.name)
        self.group = job["metadata"]["name"] if job else f"{self.labels['app.kubernetes.io/instance']}-hosts"
        self.is_cut_off = False  # its node is dead, as far as anybody sees
        self.folder = cluster.folder / "pods" / self.name
        self.log = cluster.folder / f"{self.name}.log"
        self.exit_codes, self.phase, self.is_deleted, self.is_replaced = [], "Running", False, False
        self.restarts, self.container, self.lock = 0, None, threading.Lock()
        self.ended_by = None  # as Kubernetes names it, of its container
        self.make_folder()
        self.tell({"running": {}})
        self.thread = threading.Thread(target=self.keep_running, daemon=True)
        self.thread.start()

    def tell(self, state):
        """As its kubelet does. @param state of its container"""
        container = {"name": "dlrun", "restartCount": self.restarts, "state": state}
        if self.exit_codes:
            container["lastState"] = {"terminated": {"reason": self.ended_by or "Error", "exitCode": self.exit_codes[-1]}}
        self.object["status"] = {"phase": self.phase, "podIP": self.cluster.hosts.address(self.host), "containerStatuses": [container]}
        if self.cluster.api and not self.is_cut_off and self.cluster.objects.get(("Pod", self.name)) is self.object:
            self.cluster.api.note("MODIFIED", self.object)

    # ---- its folder

    def make_folder(self):
        root = self.folder / "root"
        root.mkdir(parents=True)
        containers.copy_image(self.cluster.image, root)
        self.cluster.write_names(root)
        self.termination_log.touch()
        self.termination_log.chmod(0o666)  # as the kubelet makes it
        if self.spec["automountServiceAccountToken"]:
            self.cluster.api.give_account(self.spec["serviceAccountName"], self.account_folder, self.spec["securityContext"]["fsGroup"])
        for volume in self.spec["volumes"]:
            self.make_volume(volume)

    @property
    def termination_log(self):
        return self.folder / "termination-log"

    @property
    def account_folder(self):
        return self.folder / "account"

    def volume(self, name):
        """Where it lies."""
        found = next(one for one in self.spec["volumes"] if one["name"] == name)
        if "persistentVolumeClaim" in found:
            return self.cluster.claim(found["persistentVolumeClaim"]["claimName"])
        return self.folder / "volumes" / name

    def make_volume(self, volume):
        group = self.spec["securityContext"]["fsGroup"]
        if "persistentVolumeClaim" in volume:
            return
        folder = self.volume(volume["name"])
        folder.mkdir(parents=True)
        if "emptyDir" in volume:
            os.chown(folder, 0, group)
            folder.chmod(WRITABLE_BY_GROUP)
            return
        is_secret = "secret" in volume
        mode = volume["secret"]["defaultMode"] if is_secret else 0o644
        for name, content in self.cluster.files_of(volume).items():
            (folder / name).write_bytes(content)
            os.chown(folder / name, 0, group)
            (folder / name).chmod(mode | (mode & 0o700) >> 3 if is_secret else mode)

    # ---- its container

    def only_container(self):
        [container] = self.spec["containers"]
        return container

    def variables(self):
        fields = {"status.podIP": self.cluster.hosts.address(self.host)}
        api = {"KUBERNETES_SERVICE_HOST": self.cluster.api.host, "KUBERNETES_SERVICE_PORT": self.cluster.api.port} if self.cluster.api else {}
        api |= self.cluster.of_node.get(self.host, {})
        return api | {one["name"]: fields[one["valueFrom"]["fieldRef"]["fieldPath"]] for one in self.only_container()["env"]}

    def mounts(self):
        """@returns source, target, and whether it can only be read"""
        yield self.termination_log, "/dev/termination-log", False
        yield self.cluster.pauses, "/pauses", False
        if self.account_folder.exists():
            yield self.account_folder, ACCOUNT_FOLDER, True
        for mount in self.only_container()["volumeMounts"]:
            yield self.volume(mount["name"]), mount["mountPath"], mount.get("readOnly", False)

    def as_its_user(self, words):
        """The words that run others as the container's user, without rights."""
        of_pod, own = self.spec["securityContext"], self.only_container()["securityContext"]
        assert own["capabilities"] == {"drop": ["ALL"]} and own["allowPrivilegeEscalation"] is False
        assert of_pod["runAsNonRoot"] and of_pod["runAsUser"] != 0
        variables = {"PATH": "/usr/local/bin", "PAUSES": "/pauses/pauses"} | self.variables()
        return containers.words_in(self.folder / "root", of_pod["runAsUser"], of_pod["runAsGroup"], of_pod["fsGroup"], variables, words)

    def run(self):
        """Its container, once. @returns the exit code; negative: by that signal"""
        container, variables = self.only_container(), self.variables()
        words = [expanded(word, variables) for word in (*container["command"], *container["args"])]
        is_read_only = container["securityContext"]["readOnlyRootFilesystem"]
        laid_out = containers.laying_out(self.folder / "root", self.cluster.image, self.mounts(), is_read_only)
        script = " && ".join(("set -e", *laid_out, f"hostname {self.host_name}", 'exec "$@"'))
        with open(self.log, "ab") as output, self.lock:
            if self.is_deleted:
                return -signal.SIGTERM
            self.container = subprocess.Popen(
                [*self.cluster.hosts.within(self.host), "unshare", "--pid", "--fork", "--kill-child", "--uts", "sh", "-c", script, "sh",
                 *self.as_its_user(words)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        return self.container.wait()

    def keep_running(self):
        """Again after any end but a good one, as restartPolicy: OnFailure wants."""
        assert self.spec["restartPolicy"] == "OnFailure"
        wait_s = FIRST_BACK_OFF_S
        while True:
            self.exit_codes.append(self.run())
            if self.exit_codes[-1] == 0:
                self.phase = "Succeeded"
            elif self.is_deleted:
                self.phase = "Failed"
            if self.phase != "Running":
                break
            self.tell({"waiting": {"reason": "CrashLoopBackOff"}})
            time.sleep(wait_s)  # of a kubelet; whoever waits for what comes of it polls
            wait_s = min(2 * wait_s, BACK_OFF_MAX_S)
            self.restarts += 1
            self.tell({"running": {}})
            if self.job:
                self.cluster.look_at_limit(self.job["metadata"]["name"])
        self.tell({"terminated": {"exitCode": self.exit_codes[-1]}})
        self.cluster.on_pod_over(self)

    def main_process(self):
        """The first process of its container, as the host numbers it; None: there is none yet."""
        with contextlib.suppress(OSError, AttributeError, ValueError):
            outer = self.container.pid
            [child] = pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip().startswith("dlrun"):
                return int(child)
        return None

    def kill_container(self, reason="Error"):
        """As when its memory is used up ("OOMKilled"): SIGKILL to the first process ends all."""
        self.ended_by = reason
        os.kill(wait_until(self.main_process, f"{self.name} runs"), signal.SIGKILL)

    def delete(self):
        """As `kubectl delete`. Returns when nothing of it runs."""
        if self.cluster.api:
            self.cluster.api.end(self.object)
        else:
            self.end()
        self.thread.join()

    def end(self):
        """SIGTERM, and after the grace of the pod SIGKILL."""
        with self.lock:
            self.is_deleted = True
        self.cluster.on_pod_deleted(self)
        grace_s, process = self.spec["terminationGracePeriodSeconds"], None
        until = time.monotonic() + grace_s
        while self.thread.is_alive() and not process and time.monotonic() < until:  # its root is being laid out
            process = self.main_process()
            self.thread.join(timeout=0 if process else POLL_S)
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        self.thread.join(timeout=grace_s)
        if self.thread.is_alive():
            self.container.kill()
            self.thread.join()

    def cut_off(self):
        """Its node is dead: nothing runs there, and nobody says so."""
        self.is_cut_off = True
        for process in self.cluster.hosts.processes(self.host):
            os.kill(process, signal.SIGSTOP)

    def come_back(self):
        """Its node had only been away."""
        for process in self.cluster.hosts.processes(self.host):
            with contextlib.suppress(ProcessLookupError):  # the first that goes on may end others
                os.kill(process, signal.SIGCONT)
        self.is_cut_off = False
        if "deletionTimestamp" in self.object["metadata"]:
            self.cluster.on_pod_to_end(self.object)

    def execute(self, *words):
        """As `kubectl exec`. @returns exit code, output, complaints"""
        process = self.main_process()
        if process is None:
            return None, "", "it does not run"
        done = subprocess.run(["nsenter", "--target", str(process), "--mount", "--net", "--pid", "--uts", *self.as_its_user(words)], capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def said(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class cluster:
    """Pods of the Jobs of some manifests, on the hosts of `net_hosts`; gone at the end."""

    def __init__(self, hosts, folder, image, pauses):
        """@param image an unpacked one, with dlrun as /usr/local/bin/dlrun"""
        self.api = None  # what plays the API server, if anybody does
        self.hosts, self.folder, self.image, self.pauses = hosts, folder, image, pauses
        self.free_hosts, self.made = list(hosts.names), 0
        self.of_node = {}  # host -> variables that containers have there, as its processor would
        self.objects, self.pods, self.jobs_over = {}, [], {}
        self.lock, self.is_closing = threading.RLock(), False
        folder.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_closing = True
        for one in self.pods:
            with one.lock:
                one.is_deleted = True
            if one.container and one.container.poll() is None:
                one.container.kill()
        for one in self.pods:
            one.thread.join()
            shutil.rmtree(one.folder, ignore_errors=True)

    # ---- what is in it

    def apply(self, text):
        """All objects but Jobs, which start() makes pods of."""
        self.objects.update(read_manifests(text))

    def claim(self, name):
        folder = self.folder / "claims" / name
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
        new = root / "etc/hosts.new"
        new.write_text("\n".join(lines) + "\n")
        new.replace(root / "etc/hosts")

    def renew_names(self):
        for one in self.pods:
            if one.phase == "Running":
                self.write_names(one.folder / "root")

    # ---- Jobs

    def set_condition(self, name, kind):
        """Of a Job, which is over by it."""
        self.objects["Job", name]["status"] = {"conditions": [{"type": kind, "status": "True"}]}

    def condition(self, name):
        """"Complete" or "Failed"; None: it is not over."""
        [one] = self.objects["Job", name].get("status", {}).get("conditions") or [None]
        return one and one["type"]

    def on_job_changed(self, name):
        """Somebody has patched it."""
        if self.objects["Job", name]["spec"].get("suspend"):
            self.end_pods(name)
        self.look_at_limit(name)

    def look_at_limit(self, name):
        """Of restarts in place, of all its pods that there are: with restartPolicy OnFailure a Job fails when they are as many as its
        backoffLimit, and one where that is 0."""
        with self.lock:
            job = self.objects.get(("Job", name))
            if job is None or self.condition(name) or self.is_closing:
                return
            restarts = sum(one.restarts for one in self.pods_of(name))
            if restarts >= max(1, job["spec"]["backoffLimit"]):
                self.set_condition(name, "Failed")
                self.end_pods(name)

    def end_pods(self, name):
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
                owner = self.api.there("Job", job["metadata"]["name"])["metadata"]["uid"]
                made["metadata"]["ownerReferences"] = [{"kind": "Job", "name": job["metadata"]["name"], "uid": owner, "controller": True}]
                self.objects["Pod", name] = made
                self.api.note("ADDED", made)
            return self.run_pod(made, job)

    def run_pod(self, made, job=None):
        """On a host of its own."""
        with self.lock:
            host = next(one for one in self.free_hosts if one not in nodes_kept_off(made))
            self.free_hosts.remove(host)
            made["spec"]["nodeName"] = host
            new = pod(self, made, host, job)
            self.pods.append(new)
            self.renew_names()
            return new

    # ---- Pods, as the API server tells them

    def on_pod_made(self, made):
        """Through the API: one that a test has no node for stays Pending."""
        if set(self.free_hosts) - set(nodes_kept_off(made)) and not self.is_closing:
            self.run_pod(made)

    def on_pod_to_end(self, going):
        """@returns whether somebody tells when it has ended"""
        [one] = [one for one in self.pods if one.object is going] or [None]
        if one is None or one.phase != "Running":
            return False
        if not one.is_cut_off:
            threading.Thread(target=one.end, daemon=True).start()
        return True

    def on_pod_over(self, over):
        """On the thread of the pod. One of a Job that has failed is replaced, on another host; but not where its Job is over."""
        with self.lock:
            if self.is_closing:
                return
            if self.api and "deletionTimestamp" in over.object["metadata"]:
                self.api.remove(over.object)
            if over.job:
                self.on_job_pod_over(over)
            self.renew_names()

    def on_job_pod_over(self, over):
        name = over.job["metadata"]["name"]
        if over.phase == "Succeeded":
            is_first = self.jobs_over.setdefault(name, over) is over
            if is_first and ("Job", name) in self.objects:
                self.set_condition(name, "Complete")
        elif name not in self.jobs_over:
            self.replace(over)

    def on_pod_deleted(self, deleted):
        """It may run for as long as its grace, and another one begins beside it, but where the Job does not want that."""
        if deleted.job is None:
            return
        policy = deleted.job["spec"].get("podReplacementPolicy", "TerminatingOrFailed")
        with self.lock:
            if policy != "Failed" and not self.is_closing and deleted.job["metadata"]["name"] not in self.jobs_over:
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
