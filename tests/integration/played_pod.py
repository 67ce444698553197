"""A pod, as a kubelet runs it, of processes of this machine.

A pod is a network namespace of `net_hosts` and a folder; its container has the files of an image of scripts/build_image and no others,
mounts, processes and a name of its own, no rights, and runs as the user that the manifest names, on a root that it cannot write to, with
a token of its service account where the manifest wants one. It has a memory cgroup of its own with the limit of the manifest, where
cgroups can be made (memory_cgroups).
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import containers
from api_objects import quantity
from json_lines import text_of_all
from memory_cgroups import killed_whole
from node_fit import gpus_of
from object_conditions import set_condition
from played_probes import get, played_probes
from pod_nodes import name_of
from waiting import PATIENCE_S, wait_until

FIRST_BACK_OFF_S, BACK_OFF_MAX_S = 0.1, 1  # of Kubernetes: 10 s and 5 minutes
POLL_S = 0.05
GPU_MODULE = "/run/nvidia/libdlrun_cuda_stand_in.so"
CLOCK_LIBRARY = "/run/libdlrun_other_clock.so"
ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
KILLED = 137  # the exit code, as a container runtime tells it
OUT_OF_MEMORY = "OOMKilled", KILLED
WRITABLE_BY_GROUP = 0o2777  # as the kubelet makes folders for fsGroup


def expanded(word, variables):
    """As Kubernetes puts variables into a command: $(NAME), and $$ for $."""
    return re.sub(r"\$\$|\$\((\w+)\)", lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), word)


class pod:
    """One pod, as an object of the API server, from when it is made until its containers do not run any more.
    @param job that made it; None: somebody else did"""

    def __init__(self, cluster, made, host, node, job=None):
        self.cluster, self.object, self.job, self.host, self.node = cluster, made, job, host, node
        self.name, self.spec, self.labels = made["metadata"]["name"], made["spec"], made["metadata"]["labels"]
        self.host_name = self.spec.get("hostname", self.name)
        self.group = job["metadata"]["name"] if job else f"{self.labels['app.kubernetes.io/instance']}-hosts"
        self.is_cut_off, self.is_lost = False, False  # its node is dead, as far as anybody sees; and is so
        self.is_evicted = False
        self.clock_ahead_s = 0  # when its container is started next
        self.folder = cluster.folder / "pods" / f"{self.name}.{len(cluster.pods)}"  # a name may come back
        self.log = cluster.folder / f"{self.name}.log"
        self.exit_codes, self.phase, self.is_deleted, self.is_replaced = [], "Running", False, False
        self.restarts, self.container, self.cgroup, self.lock = 0, None, None, threading.Lock()
        self.probes, self.is_ready = None, False  # of the container that runs; whether they have found it ready
        self.ended_by = None  # reason and exit code, as Kubernetes tells them of its container that ended last; None: its own code
        self.killed_as = None  # the same, of the one that runs
        self.make_folder()
        self.tell({"running": {}})
        self.thread = threading.Thread(target=self.keep_running, daemon=True)
        cluster.add(self)  # it may be reached, or may not, before its first container is there
        self.thread.start()

    def tell(self, state):
        """As its kubelet does. @param state of its container"""
        self.state = state
        container = {"name": "dlrun", "restartCount": self.restarts, "state": state}
        if self.exit_codes:
            reason, code = self.ended_by or ("Error", self.exit_codes[-1])
            container["lastState"] = {"terminated": {"reason": reason, "exitCode": code}}
        with self.cluster.lock:  # others set conditions
            status = {"phase": self.phase, "podIP": self.cluster.hosts.address(self.host), "containerStatuses": [container]}
            self.object["status"] = status | {"conditions": self.object.get("status", {}).get("conditions", [])}
            set_condition(self.object, "Ready", str(self.phase == "Running" and "running" in state and self.is_ready))
            if self.is_evicted:
                self.object["status"]["reason"] = "Evicted"
                set_condition(self.object, "DisruptionTarget", "True", "TerminationByKubelet")
            if self.cluster.api and not self.is_cut_off and self.cluster.objects.get(("Pod", self.name)) is self.object:
                self.cluster.api.space.note("MODIFIED", "Pod", self.object)

    def tell_ready(self, probes, is_ready):
        """As these have found it, unless another container runs by now."""
        with self.lock:
            if probes is not self.probes or self.is_deleted:
                return
            self.is_ready = is_ready
        self.tell(self.state)

    def take(self, made):
        """Its object, as the API server tells it from now on. None: there is none any more."""
        if made is not None:
            self.object = made
            self.tell(self.state)
        is_to_end = made is None or "deletionTimestamp" in made["metadata"]
        if is_to_end and not self.is_deleted and not self.is_cut_off:
            threading.Thread(target=self.end, daemon=True).start()

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
        fields = {"status.podIP": self.cluster.hosts.address(self.host), "metadata.uid": self.object["metadata"]["uid"], "spec.nodeName": name_of(self.node)}
        fields |= {f"metadata.labels['{key}']": text for key, text in self.labels.items()}
        api = {"KUBERNETES_SERVICE_HOST": self.cluster.api.host, "KUBERNETES_SERVICE_PORT": self.cluster.api.port} if self.cluster.api else {}
        api |= self.cluster.nodes.variables.get(self.node, {})
        named = {one["name"]: one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
                 for one in self.only_container()["env"]}
        clock = {"LD_PRELOAD": CLOCK_LIBRARY, "OTHER_CLOCK_S": str(self.clock_ahead_s)} if self.clock_ahead_s else {}
        gpus = {"DLRUN_CUDA_MODULE": GPU_MODULE, "DLRUN_STAND_IN_GPUS": str(gpus_of(self.spec))} if self.has_driver(named) else {}
        return api | gpus | clock | named

    def has_driver(self, named):
        """NVIDIA's container runtime gives one that asks for GPUs what it names of the driver; dlrun needs what computes."""
        return gpus_of(self.spec) > 0 and "compute" in named.get("NVIDIA_DRIVER_CAPABILITIES", "").split(",")

    def mounts(self):
        """@returns source, target, and whether it can only be read"""
        yield self.termination_log, "/dev/termination-log", False
        yield self.cluster.pauses, "/pauses", False
        if "DLRUN_CUDA_MODULE" in self.variables():
            yield self.cluster.gpu_module, GPU_MODULE, True
        if self.clock_ahead_s:
            yield self.cluster.clock_library, CLOCK_LIBRARY, True
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
            if self.is_deleted or self.is_lost:
                return -signal.SIGTERM
            self.cgroup = self.make_cgroup()
            self.container = subprocess.Popen(self.in_its_cgroup(
                [*self.cluster.hosts.within(self.host), "unshare", "--pid", "--fork", "--kill-child", "--uts", "sh", "-c", script, "sh",
                 *self.as_its_user(words)]), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            self.probes = played_probes(self, self.container)
        return self.wait_for_container()

    def make_cgroup(self):
        """None: none can be made here."""
        limit = quantity(self.only_container()["resources"]["limits"]["memory"])
        return self.cluster.memory.make(self.name, int(limit)) if self.cluster.memory else None

    def in_its_cgroup(self, words):
        """The words that run others there."""
        return self.cgroup.within(words) if self.cgroup else words

    def wait_for_container(self):
        """@returns its exit code"""
        with killed_whole(self.cgroup) if self.cgroup else contextlib.nullcontext():
            code = self.container.wait()
        with self.lock:
            self.probes, self.is_ready = None, False
        is_out_of_memory = code != 0 and self.cgroup is not None and self.cgroup.kills() > 0
        if self.cgroup:
            self.cgroup.remove()
        self.ended_by, self.killed_as = OUT_OF_MEMORY if is_out_of_memory else self.killed_as, None
        return code

    def keep_running(self):
        """Again after any end but a good one, as restartPolicy: OnFailure wants."""
        assert self.spec["restartPolicy"] == "OnFailure"
        wait_s = FIRST_BACK_OFF_S
        while True:
            self.exit_codes.append(self.run())
            if self.is_lost:
                return
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

    def has_other_clock(self):
        """Its container, which runs."""
        with contextlib.suppress(OSError):
            return CLOCK_LIBRARY in pathlib.Path(f"/proc/{self.main_process()}/maps").read_text()
        return False

    def kill(self):
        """What runs of its container: the first process, which outlives whoever made it, or what lays its root out."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.main_process() or self.container.pid, signal.SIGKILL)

    def kill_container(self, reason="Error", code=137):
        """SIGKILL to the first process ends all. @param reason, code: what is told: "OOMKilled" as if its memory was used up"""
        process = wait_until(self.main_process, f"{self.name} runs")
        self.killed_as = reason, code
        os.kill(process, signal.SIGKILL)

    def end_container(self, running, grace_s):
        """A probe has failed: SIGTERM, and after that time SIGKILL. @param running: the process that ends with it"""
        if self.is_deleted:
            return
        with contextlib.suppress(ProcessLookupError, TypeError):  # it has just ended
            os.kill(self.main_process(), signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return running.wait(timeout=grace_s)
        if self.container is running:
            self.killed_as = "Error", KILLED
            self.kill()

    def get(self, port, path, timeout_s):
        """Asks its container by HTTP within its network. @param port: its name, or its number  @returns status and what is told"""
        numbers = {one["name"]: one["containerPort"] for one in self.only_container().get("ports", ())}
        hosts = self.cluster.hosts
        return hosts.call_within(self.host, lambda: get(hosts.address(self.host), numbers.get(port, port), path, timeout_s))

    def delete(self):
        """As `kubectl delete`. Returns when nothing of it runs."""
        if self.cluster.api:
            self.cluster.api.space.end(self.object)
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
            self.kill()
            self.thread.join()

    def evict(self):
        """As a kubelet that is short of something: it ends in order, and the pod has failed."""
        self.is_evicted = True
        self.end()

    def lose(self):
        """Its node is gone, with all that ran there and was stored there; its link first, so that nobody hears of the ends."""
        with self.lock:
            self.is_cut_off = self.is_lost = True
        self.cluster.hosts.set_link(self.host, "down")
        self.cluster.hosts.kill_all(self.host)
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
        """As `kubectl exec`, in its cgroup too. @returns exit code, output, complaints"""
        process = self.main_process()
        if process is None:
            return None, "", "it does not run"
        entered = ["nsenter", "--target", str(process), "--mount", "--net", "--pid", "--uts", *self.as_its_user(words)]
        done = subprocess.run(self.in_its_cgroup(entered), capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def said(self):
        """In text, whatever the format of its log."""
        return text_of_all(self.log.read_text(errors="replace")) if self.log.exists() else ""
