"""`dlrun manifests` and deploy/k8s: what they write is what Kubernetes takes and restricted Pod Security allows."""

import copy
import json
import multiprocessing
import os
import pathlib
import re
import subprocess

import kubernetes_schemas
import yaml
from bench_case import main
from kubernetes_schemas import REFUSED_BY_OLDEST, VERSIONS, held_to_schemas
from kustomizations import (begin_to_plant, ends_of_fields, is_caught, is_of_component, kustomize_tree, no_kustomize, rendering_words,
                            with_wrong_field)
from manifests_case import BAD_USAGE, COMPLETED, IMAGE, host_pod, host_template, options_of, specs_of, writes_manifests
from small_cluster import read_manifests


class fits_kubernetes(held_to_schemas, writes_manifests):
    OPTIONS = ((), ("--set", "cluster.journal.etcd.endpoints=https://etcd:2379", "--model-claim", "models"),
               ("--set", "cluster.journal.etcd.endpoints=https://etcd:2379", "--run-claim", "runs"),
               ("--set", "cluster.journal.etcd.endpoints=https://etcd:2379", "--standby"), ("--hosts", "999", "--name", "a" * 53),
               ("--hosts-min", "1"),
               ("--ps-hosts", "3", "--ps-cpus", "2", "--ps-node-selector", "disk=fast"),
               ("--set", "cluster.device=cuda", "--gpus", "2", "--control-cpus", "0", "--gpu-runtime-class", "nvidia", "--hosts-node-selector", "gpu=h200",
                "--toleration", "spot=true:NoExecute", "--toleration", "a/b:NoSchedule"),
               ("--namespace", "team-a", "--priority-class", "low", "--preemptible-priority-class", "lower", "--scheduler", "volcano", "--secret", "our.key", "--metrics-secret", "metrics", "--data-claim", "data", "--run-claim", "runs", "--archive-claim", "archives", "--queue", "team", "--hosts", "3", "--hosts-min", "2",
                "--cpus", "64", "--memory", "512Mi", "--disk", "1Ti", "--node-selector", "kubernetes.io/arch=amd64", "--node-selector", "empty=", "--set", "train.epochs=3"))

    def test_every_object_is_as_its_schema_wants(self):
        for options in self.OPTIONS:
            with self.subTest(options=options):
                objects = read_manifests(self.printed(*options))
                [job] = [one for one in objects.values() if one["kind"] == "Job"]
                may_overlap = "cluster.journal" in str(options) and "--run-claim" not in options
                self.assertEqual("podReplacementPolicy" not in job["spec"], may_overlap, "such jobs run on the oldest version too")
                self.expect_fits_kubernetes([*objects.values(), host_pod(objects)])

    def test_in_each_version_from_the_oldest_that_is_taken(self):
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs/kubernetes.md").read_text()
        self.assertEqual(re.findall(r"^- Kubernetes (\S+) or newer", text, re.M), [kubernetes_schemas.OLDEST_FOR_ALL])
        self.assertEqual(re.findall(r"schemas of Kubernetes (\S+) to (\S+)\.\s", text), [(VERSIONS[0], VERSIONS[-1])])

    def test_which_finds_what_is_wrong(self):
        objects = list(read_manifests(self.printed()).values())
        for path, value in ((("spec", "template", "spec", "restartPolicyy"), "Never"), (("spec", "backoffLimit"), "many"),
                            (("spec", "suspend"), 1), (("spec", "suspendd"), True), (("kind",), "Jobb")):
            wrong = copy.deepcopy(next(one for one in objects if one["kind"] == "Job"))
            at = wrong
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            found = [one for one in self.problems([wrong]) if one != REFUSED_BY_OLDEST]
            self.assertEqual([one.split(":")[0] for one in found], list(VERSIONS), path)
        pod = host_pod(read_manifests(self.printed()))
        pod["spec"]["hostnam"] = "x"
        self.assertEqual(len(self.problems([pod])), len(VERSIONS))

    def test_names_have_room_for_what_is_added(self):
        for kind, name in (*self.objects("--hosts", "999", "--name", "a" * 53), ("host", f"{'a' * 53}-hosts-998")):
            self.assertLessEqual(len(name), 63, kind)


class is_restricted(writes_manifests):
    """https://kubernetes.io/docs/concepts/security/pod-security-standards, "restricted", all of it that can be wrong here."""

    VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}

    def test_no_pod_has_rights(self):
        specs = self.pod_specs("--data-claim", "data", "--run-claim", "runs")
        self.assertEqual(len(specs), 2)
        for spec in specs.values():
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            self.assertGreater(spec["securityContext"]["runAsUser"], 0)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & spec.keys())
            for volume in spec["volumes"]:
                self.assertEqual(len(volume.keys() & self.VOLUMES), 1, volume)
            [container] = spec["containers"]
            self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                           "capabilities": {"drop": ["ALL"]}})
            self.assertFalse([one for one in container.get("ports", ()) if "hostPort" in one])
            self.assertEqual(container["resources"]["requests"], container["resources"]["limits"])

    def test_the_control_pod_alone_has_a_token_which_is_good_for_its_pods_and_for_telling_how_its_job_ends(self):
        objects = self.objects("--name", "x")
        specs = self.pod_specs("--name", "x")
        self.assertIs(specs["x-hosts"]["automountServiceAccountToken"], False)
        self.assertNotIn("serviceAccountName", specs["x-hosts"])
        self.assertEqual((specs["x"]["automountServiceAccountToken"], specs["x"]["serviceAccountName"]), (True, "x"))
        self.assertIs(objects["ServiceAccount", "x"]["automountServiceAccountToken"], False)
        self.assertEqual(objects["Role", "x"]["rules"],
                         [{"apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": ["x"], "verbs": ["get", "patch"]},
                          {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["x-pods"], "verbs": ["get", "patch", "delete"]},
                          {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "delete"]},
                          {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
                          {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "resourceNames": ["x-hosts"], "verbs": ["patch"]}])
        self.assertEqual(objects["RoleBinding", "x"]["roleRef"], {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"})
        self.assertEqual(objects["RoleBinding", "x"]["subjects"], [{"kind": "ServiceAccount", "name": "x"}])

    def test_or_an_account_that_is_there_already_and_no_role_is_written(self):
        objects = self.objects("--name", "x", "--service-account", "ours.x")
        self.assertFalse({"ServiceAccount", "Role", "RoleBinding"} & {kind for kind, _ in objects})
        self.assertEqual(objects["Job", "x"]["spec"]["template"]["spec"]["serviceAccountName"], "ours.x")

    def test_the_control_pod_alone_reaches_the_api_server(self):
        objects = self.objects("--name", "mine")
        policy = objects["NetworkPolicy", "mine-control"]["spec"]
        self.assertEqual((policy["policyTypes"], [rule.keys() for rule in policy["egress"]]), (["Egress"], [{"ports"}]))
        self.assertEqual([one["port"] for one in policy["egress"][0]["ports"]], [443, 6443])
        chosen = policy["podSelector"]["matchLabels"].items()
        self.assertEqual([name for (kind, name), one in objects.items()
                          if kind == "Job" and chosen <= one["spec"]["template"]["metadata"]["labels"].items()], ["mine"])
        self.assertFalse(chosen <= host_template(objects)["metadata"]["labels"].items())

    def test_only_its_own_pods_and_the_name_service_are_reached(self):
        objects = self.objects("--name", "mine")
        policy = objects["NetworkPolicy", "mine"]["spec"]
        own = policy["podSelector"]
        self.assertEqual(policy["ingress"], [{"from": [{"podSelector": own}]}])
        self.assertEqual(policy["egress"][0], {"to": [{"podSelector": own}]})
        self.assertEqual([rule.keys() for rule in policy["egress"][1:]], [{"ports"}])
        self.assertEqual([(one["port"], one["protocol"]) for one in policy["egress"][1]["ports"]],
                         [(53, "UDP"), (53, "TCP"), (5353, "UDP"), (5353, "TCP")])
        for (kind, _), one in objects.items():
            if kind == "Job":
                self.assertLessEqual(own["matchLabels"].items(), one["spec"]["template"]["metadata"]["labels"].items())
        self.assertLessEqual(own["matchLabels"].items(), host_template(objects)["metadata"]["labels"].items())

    def test_the_key_is_in_the_secret_alone_and_another_one_each_time(self):
        found = set()
        for _ in range(3):
            told = self.printed()
            key = read_manifests(told)["Secret", "mlp-dropout-key"]["stringData"]["key"].strip()
            self.assertRegex(key, r"\A[0-9a-f]{64}\Z")
            self.assertEqual(told.count(key), 1)
            found.add(key)
        self.assertEqual(len(found), 3)
        self.assertNotIn("kind: Secret", self.printed("--secret", "ours"))


class has_a_kustomize_base(writes_manifests):
    FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy/k8s/base"

    def written(self, folder):
        """By its command, in that folder."""
        comment = "".join(line[1:] for line in (self.FOLDER / "kustomization.yaml").read_text().splitlines() if line.startswith("#   "))
        [program, *words] = comment.split()
        self.assertEqual((program, words[:2]), ("dlrun", ["manifests", "job.yaml"]))
        return subprocess.run([pathlib.Path(self.program).resolve(), *words], cwd=folder, capture_output=True, text=True)

    def test_that_is_what_its_command_writes(self):
        done = self.written(self.FOLDER)
        self.assertEqual((done.returncode, done.stderr), (COMPLETED, ""))
        self.assertEqual((self.FOLDER / "objects.yaml").read_text(), done.stdout)
        kustomization = yaml.safe_load((self.FOLDER / "kustomization.yaml").read_text())
        self.assertEqual((kustomization["kind"], kustomization["resources"]), ("Kustomization", ["objects.yaml"]))

    def test_of_whose_job_file_each_wrong_field_is_refused(self):
        text = (self.FOLDER / "job.yaml").read_text()
        ends = ends_of_fields(text)
        self.assertGreater(len(ends), 30)
        job = self.bench.folder / "job.yaml"
        for end in ends:
            job.write_text(with_wrong_field(text, end))
            done = self.written(self.bench.folder)
            self.assertEqual((done.returncode, done.stdout), (BAD_USAGE, ""), text[:end].splitlines()[-1])
            self.assertRegex(done.stderr, "unknown key|is missing")


class is_what_kustomize_makes(held_to_schemas, writes_manifests):
    """Of deploy/k8s: the base, alone and with each component, and each overlay, document for document."""

    GPU_MEMORY = "8Gi"

    def setUp(self):
        super().setUp()
        self.tree = kustomize_tree(self.bench.folder)
        try:
            rendering_words()
        except no_kustomize as why:
            self.skipTest(f"it is left out: {why}")  # also in CI: another release of Debian may be out of reach

    def words_in(self, file):
        """The command, or the options, that its comment has."""
        return "".join(line[1:] for line in file.read_text().splitlines() if line.startswith("#   ")).split()

    def written(self, file):
        """By the command that it names: (kind, name) -> object."""
        words = self.words_in(file)
        if is_of_component(file):
            words = [*self.words_in(self.tree.folder / "base/kustomization.yaml"), *words]
            if "--gpus" in words:
                words[words.index("--memory") + 1] = self.GPU_MEMORY
        done = subprocess.run([pathlib.Path(self.program).resolve(), *words[1:]], cwd=self.tree.folder / "base", capture_output=True, text=True)
        self.assertEqual(done.returncode, COMPLETED, done.stderr)
        return read_manifests(done.stdout)

    def test_and_fits_kubernetes(self):
        self.assertEqual({file.parent.name for file in self.tree.files}, {"base", "gpu", "spot", "priority", "kueue", "volcano", "archive", "podmonitor", "minimal", "gpu-spot"})
        for file in self.tree.files:
            with self.subTest(file=file.parent.name):
                made = self.tree.rendered(file)
                self.assertIsNotNone(made)
                objects, wanted = read_manifests(made), self.written(file)
                self.expect_fits_kubernetes([one for one in objects.values() if one["kind"] != "PodMonitor"])  # which is no part of Kubernetes
                if file.parent.name == "gpu":  # alone it leaves the memory to the overlay
                    for kind in ("requests", "limits"):
                        objects["Job", "job"]["spec"]["template"]["spec"]["containers"][0]["resources"][kind]["memory"] = self.GPU_MEMORY
                self.assertEqual(objects, wanted)

    def test_of_which_each_wrong_field_is_caught(self):
        """By kustomize, or since it is not what dlrun writes."""
        fields = self.tree.wrong_fields()
        self.assertGreaterEqual(min(map(len, fields.values())), 3, "there are some in each file")
        planted = [(file, end) for file, ends in fields.items() for end in ends]
        with multiprocessing.Pool(len(os.sched_getaffinity(0)), begin_to_plant, (self.tree.folder, self.bench.folder)) as planters:
            caught = planters.map(is_caught, planted, chunksize=8)
        self.assertEqual([one for one, is_found in zip(planted, caught) if not is_found], [])


if __name__ == "__main__":
    main()
