"""A `kubectl` for tests: a program on PATH that hands what it is called with to the test, which answers."""

import contextlib
import json
import os
import pathlib
import socket
import threading

import yaml

from small_cluster import read_manifests

PROGRAM = """#!/usr/bin/python3
import json, os, socket, stat, sys
given = "" if stat.S_ISCHR(os.fstat(0).st_mode) else sys.stdin.read()
with socket.socket(socket.AF_UNIX) as test:
    test.connect(os.path.join(os.path.dirname(os.path.realpath(__file__)), "test.sock"))
    test.sendall(json.dumps({"words": sys.argv[1:], "input": given}).encode() + b"\\n")
    answer = json.loads(test.makefile().readline())
sys.stdout.write(answer["output"])
sys.stderr.write(answer["complaint"])
sys.stdout.flush()
sys.exit(answer["code"])
"""
KINDS = {"Job": "job.batch", "Service": "service", "ConfigMap": "configmap", "Secret": "secret",
         "PodDisruptionBudget": "poddisruptionbudget.policy", "NetworkPolicy": "networkpolicy.networking.k8s.io", "ServiceAccount": "serviceaccount", "Role": "role.rbac.authorization.k8s.io",
         "PersistentVolumeClaim": "persistentvolumeclaim", "PriorityClass": "priorityclass.scheduling.k8s.io", "LocalQueue": "localqueue.kueue.x-k8s.io",
         "RoleBinding": "rolebinding.rbac.authorization.k8s.io", "Pod": "pod", "PodMonitor": "podmonitor.monitoring.coreos.com"}
PLURALS = {"jobs": "Job", "services": "Service", "configmaps": "ConfigMap", "secrets": "Secret", "networkpolicies": "NetworkPolicy",
           "poddisruptionbudgets": "PodDisruptionBudget",
           "podmonitors.monitoring.coreos.com": "PodMonitor", "serviceaccounts": "ServiceAccount", "roles": "Role", "rolebindings": "RoleBinding"}
NAMED = ("PersistentVolumeClaim", "Secret", "ServiceAccount", "PriorityClass", "LocalQueue")  # those that options name
FAILED = 1


def option_of(words, name, default=""):
    """The value of the option --name=VALUE."""
    return next((word.partition("=")[2] for word in words if word.startswith(f"--{name}=")), default)


def key_of(word):
    """Of an object, as in job.batch/NAME."""
    kind, _, name = word.partition("/")
    return next(key for key, value in KINDS.items() if value == kind), name


class played_kubectl:
    """Plays a cluster of objects that nobody runs. What is different in a test is set, or overridden."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.program = self.folder / "kubectl"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.calls = []  # (words, input)
        self.objects = {}  # (kind, name) -> object
        self.pods = []  # as Kubernetes tells them
        self.refusals = {}  # first word, "trial", or "get" and a kind -> what Kubernetes says
        self.missing = set()  # KIND/NAME of what an option names and nobody has made; else somebody has
        self.warning = ""  # what it says of objects that it takes
        self.judge = lambda pod: ""  # what it says of a pod that it does not take
        self.context, self.minor = "test", "34"
        self.monitor_kinds = ""  # of the Prometheus Operator
        self.executed = (0, "", "")  # exit code, output, complaints of a command in a pod
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / "test.sock"))
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    @property
    def environment(self):
        return os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self.listener.accept()
                threading.Thread(target=self.answer_to, args=(caller,), daemon=True).start()

    def answer_to(self, caller):
        with caller:
            asked = json.loads(caller.makefile().readline())
            self.calls.append((asked["words"], asked["input"]))
            code, output, complaint = self.answer(asked["words"], asked["input"])
            caller.sendall(json.dumps({"code": code, "output": output, "complaint": complaint}).encode() + b"\n")

    # ---- what it answers

    def answer(self, words, given):
        """@returns exit code, output, complaints"""
        said = [word for word in words if not word.startswith("--namespace=")]
        if "--dry-run=server" in said and said[0] == "apply" and "trial" in self.refusals:
            return FAILED, "", self.refusals["trial"]
        if said[0] in self.refusals and "--dry-run=server" not in said:
            return FAILED, "", self.refusals[said[0]]
        return getattr(self, f"on_{said[0].replace('-', '_')}")(said[1:], given)

    def on_config(self, words, _):
        assert words == ["current-context"]
        return (0, f"{self.context}\n", "") if self.context else (FAILED, "", "error: current-context is not set\n")

    def on_version(self, words, _):
        assert option_of(words, "output") == "json"
        return 0, json.dumps({"clientVersion": {"major": "1", "minor": "20"}, "serverVersion": {"major": "1", "minor": self.minor}}), ""

    def on_api_resources(self, words, _):
        assert option_of(words, "output") == "name" and option_of(words, "api-group") == "monitoring.coreos.com", words
        return 0, self.monitor_kinds, ""

    def on_get(self, words, _):
        if words[0] == "pods":
            return 0, json.dumps({"items": self.pods_of(option_of(words, "selector"))}), ""
        if option_of(words, "output") == "json":
            found = self.objects.get(key_of(words[0]))
            return 0, json.dumps(found) if found else "", ""
        assert option_of(words, "output") == "name", words
        if kind := self.named_kind(words):
            refused = self.refusals.get(f"get {kind}", "")
            told = [] if refused else [word for word in words if word.startswith(f"{kind}/") and word not in self.missing]
            return FAILED if refused else 0, "".join(f"{word}\n" for word in told), refused
        return 0, "".join(f"{name}\n" for name in self.names_of(words)), ""

    def named_kind(self, words):
        """Of which alone it is asked, if options name such objects."""
        kinds = {word.partition("/")[0] for word in words if "/" in word}
        return (*kinds,)[0] if len(kinds) == 1 and kinds <= {KINDS[kind] for kind in NAMED} else ""

    def names_of(self, words):
        there = {f"{KINDS[kind]}/{name}": one for (kind, name), one in self.objects.items()}
        if selector := option_of(words, "selector"):
            wanted = dict(pair.split("=") for pair in selector.split(","))
            kinds = {KINDS[PLURALS[plural]] for plural in words[0].split(",")}
            return [name for name, one in there.items()
                    if name.partition("/")[0] in kinds and wanted.items() <= one["metadata"].get("labels", {}).items()]
        return [word for word in words if word in there]

    def pods_of(self, selector):
        assert "app.kubernetes.io/component=control" in selector, selector
        return self.pods

    def on_apply(self, words, given):
        assert "--filename=-" in words and "--server-side" in words, words
        if "--dry-run=server" not in words:
            self.objects.update(read_manifests(given))
        return 0, "".join(f"{name} serverside-applied\n" for _, name in read_manifests(given)), self.warning

    def on_create(self, words, given):
        """Of a pod, which is not made. As a server, it wants an account that is there."""
        assert {"--dry-run=server", "--filename=-"} <= {*words}, words
        pod = json.loads(given)
        assert pod["kind"] == "Pod" and "name" not in pod["metadata"] and "ownerReferences" not in pod["metadata"], pod
        name, account = pod["metadata"]["generateName"], pod["spec"].get("serviceAccountName")
        refused = self.judge(pod)
        if account in self.own_accounts():
            refused = f'error looking up service account team-a/{account}: serviceaccount "{account}" not found'
        if not refused:
            return 0, f"pod/{name}abcde\n", self.warning
        is_whole = refused.startswith("Error from server")
        return FAILED, "", refused if is_whole else f'Error from server (Forbidden): pods "{name}" is forbidden: {refused}\n'

    def own_accounts(self):
        """Those that come with a job which is not there yet."""
        tried = next((given for words, given in reversed(self.calls) if "apply" in words), "")
        return {name for kind, name in read_manifests(tried) if kind == "ServiceAccount"} if tried else set()

    def on_patch(self, words, _):
        for part, values in yaml.safe_load(option_of(words, "patch")).items():
            self.objects[key_of(words[0])][part].update(values)
        return 0, "patched\n", ""

    def on_delete(self, words, _):
        names = {f"{KINDS[kind]}/{name}": (kind, name) for kind, name in self.objects}
        for word in words:
            if word in names:
                del self.objects[names[word]]
        return 0, "deleted\n", ""

    def on_exec(self, words, _):
        end = words.index("--")
        assert words[1:end] == ["--container=dlrun"], words
        return self.execute(words[0], words[end + 1:])

    def execute(self, pod, words):
        """In a container. As kubectl does, it tells of an exit code."""
        code, output, complaint = self.executed
        return code, output, complaint + (f"command terminated with exit code {code}\n" if code else "")
