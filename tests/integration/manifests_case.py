"""Base of tests of `dlrun manifests`: the objects that it writes, and the pods that are made of them."""

import copy
import json
import subprocess

import small_data
import yaml
from bench_case import bench_case
from small_cluster import read_manifests

COMPLETED, BAD_USAGE = 0, 2
IMAGE = "registry.example.com/dlrun:0.2.0"


def specs_of(objects):
    [(name, job)] = [(name, one) for (kind, name), one in objects.items() if kind == "Job"]
    control = job["spec"]["template"]["spec"]
    templates = {f"{name}-hosts": host_template(objects), f"{name}-ps": host_template(objects, "ps-pod.json")}
    return {name: control} | {kind: made_like(control, one["spec"]) for kind, one in templates.items() if one}


def made_like(control, template):
    """What the control pod makes of the template: tests/kubernetes/pod_requests_test.cpp."""
    made = copy.deepcopy(template)
    made |= {key: control[key] for key in ("imagePullSecrets", "priorityClassName", "schedulerName") if key in control}
    if "runtimeClassName" in control:
        made.setdefault("runtimeClassName", control["runtimeClassName"])
    if "nodeSelector" in control:
        made["nodeSelector"] = made.get("nodeSelector", {}) | control["nodeSelector"]
    made["tolerations"] = [*made["tolerations"], *(one for one in control["tolerations"] if one not in made["tolerations"])]
    [own], [container] = control["containers"], made["containers"]
    container["image"] = own["image"]
    for kind in ("requests", "limits"):
        kept = {name: amount for name, amount in own["resources"][kind].items() if name not in ("cpu", "ephemeral-storage")}
        container["resources"][kind] = kept | container["resources"][kind]
    named = {one["name"] for one in container["env"]}
    container["env"] += [one for one in own["env"] if "value" in one and one["name"] not in named]
    return made


def host_template(objects, key="pod.json"):
    """Of the pods of hosts. None: there is none."""
    return next((json.loads(one["data"][key]) for one in objects.values() if one["kind"] == "ConfigMap" and key in one["data"]), None)


def options_of(container, *names):
    """What follows them among its arguments."""
    args = container["args"]
    return [args[args.index(name) + 1] for name in names]


def hosts_file(objects):
    """The list of hosts that the control pod reads. @param objects: of a job called x"""
    return yaml.safe_load(objects["ConfigMap", "x-files"]["data"]["hosts.yaml"])


def host_pod(objects):
    """One of them, as the control pod makes it."""
    [spec] = [spec for name, spec in specs_of(objects).items() if name.endswith("-hosts")]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": host_template(objects)["metadata"] | {"name": "a-hosts-0-1"}, "spec": spec}


class writes_manifests(bench_case):
    records = 20

    def setUp(self):
        super().setUp()
        self.job = small_data.write_spec(self.bench.folder / "job.yaml", self.spec())

    def call(self, *options, image=IMAGE, job=None):
        """@returns exit code, output, complaints"""
        done = subprocess.run([self.program, "manifests", str(job or self.job), "--image", image, *options], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def printed(self, *options, **how):
        code, told, complaint = self.call(*options, **how)
        self.assertEqual(code, COMPLETED, complaint)
        return told

    def objects(self, *options, **how):
        return read_manifests(self.printed(*options, **how))

    def pod_specs(self, *options):
        """Of the control pod, and of the pods that it makes: those of "x" are "x" and "x-hosts"."""
        return specs_of(self.objects(*options))
