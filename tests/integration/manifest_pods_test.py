"""The pods and other objects that `dlrun manifests` writes: what was asked for is in them."""

import json
import stat
import subprocess

import small_data
from bench_case import main
from manifests_case import BAD_USAGE, COMPLETED, host_template, hosts_file, options_of, specs_of, writes_manifests
from played_pod import expanded
from small_cluster import read_manifests

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


class is_probed(writes_manifests):
    def test_each_pod_by_its_kubelet_at_its_own_address(self):
        specs = self.pod_specs("--name", "x", "--ps-hosts", "1")
        self.assertEqual(len(specs), 3)
        for name, spec in specs.items():
            [container] = spec["containers"]
            self.assertEqual(options_of(container, "--probe-listen"), ["$(POD_IP):7701"], name)
            self.assertEqual(container["ports"], [{"name": "probes", "containerPort": 7701, "protocol": "TCP"}], name)
            told = {kind: (one["httpGet"], one["periodSeconds"], one["timeoutSeconds"], one["failureThreshold"])
                    for kind, one in container.items() if kind.endswith("Probe")}
            alive, ready = ({"path": path, "port": "probes"} for path in ("/livez", "/readyz"))
            self.assertEqual(told, {"startupProbe": (alive, 1, 1, 600), "livenessProbe": (alive, 10, 5, 3), "readinessProbe": (ready, 1, 1, 15)}, name)
            self.assertEqual(container["livenessProbe"]["terminationGracePeriodSeconds"], 10, name)

    def test_at_a_port_that_is_opened_to_nobody(self):
        policies = [one["spec"] for (kind, _), one in self.objects("--name", "x", "--metrics-secret", "metrics").items() if kind == "NetworkPolicy"]
        self.assertNotIn("7701", json.dumps(policies))


class has_archives(writes_manifests):
    def test_in_a_claim_of_their_own_from_which_the_control_pod_goes_on(self):
        objects = self.objects("--name", "x", "--archive-claim", "archives", "--archive-every", "30s")
        control = objects["Job", "x"]["spec"]["template"]["spec"]
        [container] = control["containers"]
        self.assertEqual([one["persistentVolumeClaim"] for one in control["volumes"] if one["name"] == "archive"], [{"claimName": "archives"}])
        self.assertEqual([one["mountPath"] for one in container["volumeMounts"] if one["name"] == "archive"], ["/archive"])
        args = container["args"]
        self.assertEqual(args[args.index("--from-archive") + 1], "/archive/x")
        for word in ("durability.archive.folder=/archive/x", "durability.archive.every=30s"):
            self.assertEqual(args[args.index(word) - 1], "--set")
        self.assertNotIn("archive", json.dumps(host_template(objects)))
        self.assertNotIn("warning", self.call("--archive-claim", "archives", "--model-claim", "models")[2])
        self.assertIn("without --run-claim and --model-claim the trained model goes", self.call("--archive-claim", "archives")[2])
        self.assertNotIn("archive", self.printed("--name", "x"))


class has_gpus(writes_manifests):
    OF_GPUS = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}

    def made(self, *options, device="cuda", said=""):
        """@returns the specs of "x" and of "x-hosts", and the list of hosts"""
        code, told, complaint = self.call("--name", "x", "--run-claim", "runs", "--memory", "32Gi", "--disk", "10Gi",
                                          "--set", f"cluster.device={device}", "--hosts", "2", "--hosts-min", "3", *options)
        self.assertEqual((code, complaint), (COMPLETED, said))
        objects = read_manifests(told)
        specs = specs_of(objects)
        return specs["x"], specs["x-hosts"], hosts_file(objects)

    def gpus(self, spec, resource="nvidia.com/gpu"):
        [container] = spec["containers"]
        self.assertEqual(container["resources"]["requests"], container["resources"]["limits"])
        variables = {one["name"]: one.get("value") for one in container["env"]}
        count = int(container["resources"]["limits"].get(resource, 0))
        self.assertEqual(variables.get("NVIDIA_DRIVER_CAPABILITIES"), "compute,utility" if count else None)
        self.assertEqual(self.OF_GPUS | {"key": resource} in spec.get("tolerations", ()), count > 0)
        return count

    def test_in_every_pod(self):
        control, hosts, listed = self.made("--gpus", "1", "--set", "cluster.workers=3")
        self.assertEqual((self.gpus(control), self.gpus(hosts)), (1, 1))
        self.assertNotIn("gpus", listed["hosts"][0])
        control, hosts, _ = self.made("--gpus", "2", "--control-gpus", "1", "--set", "cluster.workers=5")
        self.assertEqual((self.gpus(control), self.gpus(hosts)), (1, 2))

    def test_or_in_all_but_the_control_pod_where_then_no_worker_is(self):
        for option in ("--control-gpus", "--control-cpus"):
            control, hosts, listed = self.made("--gpus", "4", option, "0", "--set", "cluster.workers=8")
            self.assertEqual((self.gpus(control), self.gpus(hosts)), (0, 4))
            self.assertEqual(listed["hosts"][0]["gpus"], "none")
        self.assertNotIn("gpus", self.made("--set", "cluster.workers=3", "--gpus", "1")[2]["hosts"][0])

    def test_under_the_name_that_the_nodes_have_for_them(self):
        _, hosts, _ = self.made("--gpus", "1", "--control-gpus", "0", "--gpu-resource", "nvidia.com/mig-1g.10gb", "--gpu-runtime-class", "nvidia")
        self.assertEqual((self.gpus(hosts, "nvidia.com/mig-1g.10gb"), hosts["runtimeClassName"]), (1, "nvidia"))
        control, _, _ = self.made("--gpus", "1", "--control-gpus", "0", "--gpu-runtime-class", "nvidia")
        self.assertNotIn("runtimeClassName", control)

    def test_so_that_auto_is_cuda_whatever_the_node_of_the_control_pod_has(self):
        said = "dlrun: cluster.device: auto is cuda: pods have GPUs (--gpus 1)\n"
        control, _, _ = self.made("--gpus", "1", "--control-gpus", "0", device="auto", said=said)
        self.assertEqual(control["containers"][0]["args"][-2:], ["--set", "cluster.device=cuda"])
        control, _, _ = self.made("--gpus", "1", "--control-gpus", "0")
        self.assertEqual(control["containers"][0]["args"].count("cluster.device=cuda"), 1)

    def test_of_which_none_is_idle_without_a_word(self):
        self.made("--gpus", "2", "--control-gpus", "0", "--set", "cluster.workers=3",
                  said="dlrun: warning: of the 4 GPUs of 2 pods 1 have no worker: cluster.workers is 3\n")
        self.made("--gpus", "2", "--set", "cluster.workers=6", "--set", "cluster.gpus=0",
                  said="dlrun: warning: of the 6 GPUs of 3 pods 3 have no worker: cluster.workers is 6, and cluster.gpus names 1 of each pod\n")

    def test_and_memory_for_what_cuda_takes_of_the_host(self):
        def needed(*options):
            words = [self.program, "validate", str(self.job), "--kubernetes", "--hosts", "4", "--json", *options]
            told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["kubernetes"]["memory"]
            return told["bytes"], [row["what"] for row in told["rows"]]

        bytes_with, rows = needed("--set", "cluster.device=cuda")
        self.assertEqual(needed("--gpus", "1", "--set", "cluster.device=auto"), (bytes_with, rows), "auto is cuda")
        self.assertTrue([row for row in rows if row.startswith("CUDA and its libraries")], rows)
        bytes_without, rows = needed()
        self.assertFalse([row for row in rows if "CUDA" in row], rows)
        self.assertGreater(bytes_with, bytes_without + (1 << 30))
        self.assertGreaterEqual(needed("--gpus", "1", "--control-gpus", "0", "--set", "cluster.device=cuda")[0], bytes_with)
        words = ("validate", str(self.job), "--kubernetes", "--gpus", "2", "--control-gpus", "0", "--set", "cluster.device=cuda")
        told = subprocess.run([self.program, *words], capture_output=True, text=True)
        self.assertIn("--hosts 1 --gpus 2 --control-gpus 0 --memory ", told.stdout)

    def refusal(self, *options, cluster=()):
        job = small_data.write_spec(self.bench.folder / "gpus.yaml", self.spec() | {"cluster": {"workers": 2} | dict(cluster)})
        code, told, said = self.call(*options, job=job)
        self.assertEqual((code, told), (BAD_USAGE, ""), options)
        return said

    def test_or_is_refused(self):
        for options, cluster, words in (
                ((), {"device": "cuda"}, ('cluster.device: with "cuda"', "--gpus", 'let it be "cpu"')),
                ((), {"gpus": [0]}, ("cluster.gpus", "--gpus", "leave it out")),
                (("--gpus", "1"), {"device": "cpu"}, ("--gpus '1'", "cluster.device: cpu", "leave --gpus out")),
                (("--gpus", "2"), {"gpus": [0, 2]}, ("cluster.gpus: there is no GPU 2", "from 0 to 1", "leave the key out")),
                (("--gpus", "2", "--control-gpus", "1"), {"gpus": [1]}, ("there is no GPU 1", "from 0 to 0")),
                (("--control-gpus", "1"), {}, ("--control-gpus '1'", "--gpus")),
                (("--gpu-resource", "a.b/c"), {}, ("--gpu-resource 'a.b/c'", "--gpus")),
                (("--gpu-runtime-class", "nvidia"), {}, ("--gpu-runtime-class 'nvidia'", "--gpus")),
                (("--gpus", "1", "--control-cpus", "0", "--control-gpus", "1"), {}, ("--control-gpus '1'", "--control-cpus 0", "leave one of them out")),
                (("--gpus", "1", "--control-gpus", "0", "--hosts-min", "1"), {}, ("--hosts-min '1'", "--control-gpus 0", "2 or more")),
                (("--gpus", "1", "--gpu-runtime-class", "A"), {}, ("--gpu-runtime-class 'A'", "RuntimeClass"))):
            said = self.refusal(*options, cluster=cluster)
            for word in words:
                self.assertIn(word, said)
        for name in ("gpu", "nvidia.com/", "/gpu", "kubernetes.io/gpu", "a.kubernetes.io/gpu", "nvidia.com/a/b", "nvidia com/gpu", "A.b/c"):
            self.assertIn(f"--gpu-resource '{name}'", self.refusal("--gpus", "1", "--gpu-resource", name))
        for option in ("--gpus", "--control-gpus"):
            for value in ("-1", "65", "1.5", "all", "01", *(("0",) if option == "--gpus" else ())):
                self.assertIn(option, self.refusal(f"{option}={value}"))


class is_on_some_nodes(writes_manifests):
    def test_that_have_labels_which_those_of_hosts_may_have_more_of(self):
        specs = self.pod_specs("--name", "x", "--node-selector", "zone=a", "--hosts-node-selector", "gpu=h200", "--hosts-node-selector", "spot=")
        self.assertEqual(specs["x"]["nodeSelector"], {"zone": "a"})
        self.assertEqual(specs["x-hosts"]["nodeSelector"], {"zone": "a", "gpu": "h200", "spot": ""})

    def test_or_taints_that_its_pods_bear(self):
        specs = self.pod_specs("--name", "x", "--toleration", "gke/spot=true:NoSchedule", "--toleration", "a:NoExecute", "--toleration", "b=:PreferNoSchedule")
        wanted = [{"key": "gke/spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}, {"key": "a", "operator": "Exists", "effect": "NoExecute"},
                  {"key": "b", "operator": "Equal", "value": "", "effect": "PreferNoSchedule"}]
        self.assertEqual(specs["x"]["tolerations"], wanted)
        self.assertEqual(specs["x-hosts"]["tolerations"][2:], wanted)
        self.assertEqual([one["tolerationSeconds"] for one in specs["x-hosts"]["tolerations"][:2]], [10, 10])

    def test_of_which_one_that_is_asked_for_twice_is_there_once(self):
        spec = self.pod_specs("--name", "x", "--gpus", "1", "--toleration", "nvidia.com/gpu:NoSchedule", "--set", "cluster.device=cuda")["x"]
        self.assertEqual(spec["tolerations"], [has_gpus.OF_GPUS])


class has_its_journal_in_an_etcd(writes_manifests):
    FOLDER = "/run/secrets/dlrun-journal"

    def journal(self, **options):
        """A job file."""
        etcd = {"endpoints": ["https://a.team-b.svc:2379", "https://b.team-b.svc:12379"], "certificate_file": f"{self.FOLDER}/tls.crt",
                "key_file": f"{self.FOLDER}/tls.key", **options}
        return small_data.write_spec(self.bench.folder / "journal.yaml", self.spec() | {"cluster": {"journal": {"etcd": etcd}}})

    def made(self, *options, **journal):
        objects = self.objects("--name", "x", "--journal-secret", "etcd", *options, job=self.journal(**journal))
        return objects, objects["Job", "x"]["spec"]["template"]["spec"]

    def test_which_the_control_pod_alone_opens_and_reaches(self):
        objects, control = self.made()
        mounted = [one for one in control["containers"][0]["volumeMounts"] if one["mountPath"] == self.FOLDER]
        self.assertEqual([(one["name"], one["readOnly"]) for one in mounted], [("journal", True)])
        self.assertEqual([one["secret"] for one in control["volumes"] if one["name"] == "journal"],
                         [{"secretName": "etcd", "defaultMode": 0o400}])
        self.assertNotIn("etcd", json.dumps(host_template(objects)))
        self.assertEqual([one["port"] for one in objects["NetworkPolicy", "x-control"]["spec"]["egress"][0]["ports"]], [443, 2379, 6443, 12379])
        self.assertEqual({one["port"] for one in objects["NetworkPolicy", "x"]["spec"]["egress"][1]["ports"]}, {53, 5353})
        self.assertEqual(hosts_file(objects)["coordinator"], "root")

    def test_under_a_prefix_that_no_other_job_has(self):
        _, control = self.made()
        [container] = control["containers"]
        fields = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"]}
        self.assertEqual(fields["JOB_UID"], "metadata.labels['batch.kubernetes.io/controller-uid']")
        words = [expanded(word, {"JOB_UID": "7f"}) for word in container["args"]]
        self.assertEqual(words[-2:], ["--set", "cluster.journal.etcd.prefix=dlrun/x-7f"])

    def test_or_under_the_one_that_the_job_names(self):
        for options, journal in (((), {"prefix": "jobs/mine"}), (("--set", "cluster.journal.etcd.prefix=jobs/mine"), {})):
            _, control = self.made(*options, **journal)
            self.assertNotIn("$(JOB_UID)", json.dumps(control))
            self.assertIn("JOB_UID", json.dumps(control), "the note of the end names the Job")

    def test_and_another_control_pod_begins_at_once_where_each_has_a_folder_of_its_own(self):
        objects, control = self.made("--model-claim", "models")
        self.assertNotIn("podReplacementPolicy", objects["Job", "x"]["spec"], "TerminatingOrFailed, as it is by default")
        self.assertEqual({(one["key"], one["tolerationSeconds"]) for one in control["tolerations"]},
                         {("node.kubernetes.io/not-ready", 0), ("node.kubernetes.io/unreachable", 0)})
        objects, control = self.made("--run-claim", "runs")
        self.assertEqual(objects["Job", "x"]["spec"]["podReplacementPolicy"], "Failed")
        self.assertEqual(control["tolerations"], [])

    def test_and_a_second_control_pod_waits_on_another_node_where_that_is_wanted(self):
        objects, control = self.made("--standby", prefix="jobs/mine")
        job, alone = objects["Job", "x"]["spec"], self.made()[0]["Job", "x"]["spec"]
        self.assertEqual([(one["parallelism"], one.get("completions"), one["backoffLimit"], "affinity" in one["template"]["spec"])
                          for one in (job, alone)], [(2, None, 2**31 - 1, True), (1, 1, 2**31 - 1, False)])
        [apart] = control["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        self.assertEqual(apart["podAffinityTerm"]["labelSelector"]["matchLabels"], job["template"]["metadata"]["labels"])
        self.assertEqual(host_template(objects)["metadata"]["annotations"]["dlrun/standby"], "true")
        self.assertIn("JOB_UID", json.dumps(control))

    def test_and_no_second_one_where_it_could_not_take_over(self):
        for told, words in ((self.call("--standby"), ("--standby", "cluster.journal", "leave --standby out")),
                            (self.call("--standby", "--journal-secret", "etcd", "--run-claim", "runs", job=self.journal()), ("--run-claim 'runs'", "--model-claim"))):
            self.assertTrue(told[:2] == (BAD_USAGE, "") and all(word in told[2] for word in words), told)

    def test_and_the_model_comes_into_a_claim(self):
        _, control = self.made("--model-claim", "models")
        args = control["containers"][0]["args"]
        self.assertEqual(args[args.index("--export") + 1], "/model/x.safetensors")
        self.assertEqual([one["persistentVolumeClaim"] for one in control["volumes"] if one["name"] == "model"], [{"claimName": "models"}])

    def test_which_no_archive_has(self):
        code, _, complaint = self.call("--name", "x", "--journal-secret", "etcd", "--archive-claim", "archives", job=self.journal())
        self.assertEqual(code, BAD_USAGE)
        self.assertIn("is not archived", complaint)

    def test_and_what_is_lost_is_told(self):
        def told(*options):
            return self.call("--journal-secret", "etcd", *options, job=self.journal())[2]

        self.assertNotIn("warning", told("--model-claim", "models") + told("--run-claim", "runs"))
        self.assertIn("without --run-claim and --model-claim the trained model goes", told())
        self.assertIn("back to its beginning", told("--model-claim", "models", "--hosts-min", "1"))
        self.assertIn("another one begins", self.call("--model-claim", "models")[2])


class says_what_the_pods_do(writes_manifests):
    def test_the_job_file_is_in_it_to_the_byte(self):
        text = self.job.read_text()
        for head in ("", "# \u00e4\u00f6\u00fc, \u20ac and \U0001f600\n", "# tab\there\n", "\n\n", "# $(POD_IP) \\ \" '\n", "# trailing \n#\n", "# \u2028 \u2029 \u0085 \ufeff\n"):
            for tail in ("", "\n", "\n\n\n", "\n# end"):
                job = self.bench.folder / "strange.yaml"
                job.write_bytes((head + text + tail).encode())
                files = self.objects("--name", "x", job=job)["ConfigMap", "x-files"]["data"]
                self.assertEqual(files["job.yaml"], head + text + tail)

    def test_a_second_apply_changes_nothing_that_runs(self):
        objects = self.objects("--name", "x")
        for key in (("ConfigMap", "x-files"), ("Secret", "x-key")):
            self.assertIs(objects[key]["immutable"], True)

    def test_a_second_control_pod_begins_when_the_first_has_ended(self):
        self.assertEqual(self.objects("--name", "x")["Job", "x"]["spec"]["podReplacementPolicy"], "Failed")

    def test_values_of_the_command_line_are_not_taken_for_variables(self):
        spec = self.pod_specs("--name", "x", "--set", "data.train.records=/data/$(POD_IP)$x")["x"]
        words = [expanded(word, {"POD_IP": "10.0.0.1", "x": "wrong"}) for word in spec["containers"][0]["args"]]
        self.assertEqual(words[-2:], ["--set", "data.train.records=/data/$(POD_IP)$x"])
        self.assertIn("10.0.0.1", words)

    def test_what_pods_print_is_for_a_collector_of_logs_unless_text_is_asked_for(self):
        for options, format_of in ((("--ps-hosts", "2"), ["json"]), (("--log-format", "json"), ["json"]), (("--log-format", "text"), [])):
            for name, spec in self.pod_specs("--name", "x", *options).items():
                args = spec["containers"][0]["args"]
                self.assertEqual([args[at + 1] for at, word in enumerate(args) if word == "--log-format"], format_of, name)
        self.assertEqual(self.call("--log-format", "xml")[0], BAD_USAGE)

    def test_pods_are_as_large_as_was_asked_for(self):
        for spec in self.pod_specs("--cpus", "6", "--memory", "20Gi", "--disk", "7Gi", "--node-selector", "a/b=c").values():
            self.assertEqual(spec["containers"][0]["resources"]["limits"], {"cpu": "6", "memory": "20Gi", "ephemeral-storage": "7Gi"})
            self.assertEqual([one["emptyDir"] for one in spec["volumes"] if "emptyDir" in one], [{"sizeLimit": "7Gi"}])
            self.assertEqual(spec["nodeSelector"], {"a/b": "c"})

    def test_a_control_pod_that_is_spared_is_small_and_others_are_larger(self):
        def limits(*options):
            return {name: spec["containers"][0]["resources"]["limits"] for name, spec in self.pod_specs("--name", "x", "--hosts", "4", *options).items()}

        def needed(*options):
            words = [self.program, "validate", str(self.job), "--kubernetes", "--hosts", "4", "--json", *options]
            told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            return json.loads(told)["kubernetes"]["memory"]["bytes"]

        spared = limits("--cpus", "6", "--control-cpus", "0")
        self.assertEqual({name: one["cpu"] for name, one in spared.items()}, {name: "1" if name == "x" else "6" for name in spared})
        self.assertIn("cpus: 0", self.objects("--name", "x", "--control-cpus", "0")["ConfigMap", "x-files"]["data"]["hosts.yaml"])
        self.assertEqual(limits("--cpus", "6", "--control-cpus", "2")["x"]["cpu"], "2")
        self.assertGreater(needed("--control-cpus", "0"), needed())

    def test_pods_of_hosts_may_get_more_memory_where_that_is_said(self):
        def annotations(*options):
            return json.loads(self.objects(*options)["ConfigMap", "x-files"]["data"]["pod.json"])["metadata"].get("annotations")

        self.assertEqual(annotations("--name", "x", "--memory", "4Gi", "--memory-max", "9Gi")["dlrun/memory-max"], "9Gi")
        self.assertNotIn("dlrun/memory-max", annotations("--name", "x", "--memory", "4Gi"))

    def test_people_are_told_of_a_pod_that_does_not_run_as_late_as_they_want(self):
        template = host_template(self.objects("--name", "x", "--pending-patience", "600"))
        self.assertEqual(template["metadata"]["annotations"]["dlrun/pending-patience-s"], "600")
        self.assertNotIn("dlrun/pending-patience-s", self.printed("--name", "x"))

    def test_validate_shows_before_how_large_they_are(self):
        def told(*options):
            words = [self.program, "validate", str(self.job), "--kubernetes", "--set", "cluster.workers=8", "--hosts", "4", *options]
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout

        def needed(*options):
            return json.loads(told(*options, "--json"))["kubernetes"]

        for options in ((), ("--hosts-min", "2"), ("--archive-claim", "archives"), ("--hosts-min", "3", "--archive-claim", "archives", "--control-cpus", "0")):
            with self.subTest(options=options):
                words = told(*options).splitlines()[-1].partition("'submit': ")[2].split()
                self.assertLess({*options}, {*words})
                limits = {}
                for option, name in (("--memory", "memory"), ("--disk", "ephemeral-storage")):
                    at = words.index(option)
                    limits[name] = words[at + 1]
                    del words[at:at + 2]
                spec = self.pod_specs("--name", "x", "--set", "cluster.workers=8", *words)["x-hosts"]
                self.assertLessEqual(limits.items(), spec["containers"][0]["resources"]["limits"].items())
        self.assertGreater(needed("--hosts-min", "2")["memory"]["bytes"], needed()["memory"]["bytes"])
        archived = {row["what"] for row in needed("--archive-claim", "archives")["disk"]["rows"]} - {row["what"] for row in needed()["disk"]["rows"]}
        self.assertEqual(archived, {"snapshots that are being archived"})

    def test_a_sum_for_pods_that_cannot_be_is_not_shown(self):
        for options, words in ((("--hosts-min", "3"), ("--hosts-min '3'", "there are 2 at most")),
                               (("--control-cpus", "0", "--hosts-min", "1"), ("--hosts-min '1'", "2 or more"))):
            told = subprocess.run([self.program, "validate", str(self.job), "--kubernetes", *options], capture_output=True, text=True)
            self.assertEqual((told.returncode, told.stdout), (BAD_USAGE, ""))
            for word in words:
                self.assertIn(word, told.stderr)
        told = subprocess.run([self.program, "validate", str(self.job), "--archive-claim", "archives"], capture_output=True, text=True)
        self.assertEqual(told.returncode, BAD_USAGE)

    def test_pods_are_as_large_as_the_job_needs_where_nobody_says_more(self):
        code, told, said = self.call("--run-claim", "runs")
        self.assertEqual(code, COMPLETED)
        for name, spec in specs_of(read_manifests(told)).items():
            limits = spec["containers"][0]["resources"]["limits"]
            self.assertIn(f"--memory {limits['memory']} ", said)
            if "ephemeral-storage" in limits:
                self.assertIn(f"--disk {limits['ephemeral-storage']} ", said, name)
        self.assertIn("--set data.memory_limit=1024MiB", said)
        told = self.pod_specs("--name", "x")["x"]["containers"][0]["args"]
        self.assertIn("data.memory_limit=1073741824", told)

    def test_stores_may_hold_four_fifths_of_the_disk_or_what_the_job_says(self):
        def quotas(*options):
            args = self.objects("--name", "x", "--disk", "10Gi", *options)["Job", "x"]["spec"]["template"]["spec"]["containers"][0]["args"]
            return [word.partition("=")[2] for word in args if word.startswith("durability.disk_quota=")]

        derived = str(8 << 30)
        self.assertEqual(quotas(), [derived])
        self.assertEqual(quotas("--set", "durability.disk_quota=0"), [derived, "0"], "the last one counts")
        self.assertEqual(quotas("--set", "durability.disk_quota=3GiB"), ["3GiB"])

    def test_data_may_take_what_is_left_or_what_the_job_says(self):
        def limits(*options, **how):
            args = self.objects("--name", "x", *options, **how)["Job", "x"]["spec"]["template"]["spec"]["containers"][0]["args"]
            return [int(word.partition("=")[2]) for word in args if word.startswith("data.memory_limit=")]

        [left] = limits("--memory", "4Gi")
        self.assertTrue(3 << 30 < left < 4 << 30, left)
        job = small_data.write_spec(self.bench.folder / "limited.yaml", self.spec() | {"data": {"train": self.data, "memory_limit": "100MiB"}})
        self.assertEqual(limits("--memory", "4Gi", job=job), [])

    def test_the_list_of_hosts_has_room_for_those_that_may_come_later(self):
        for options, most in (((), 2), (("--hosts", "3"), 4), (("--hosts", "3", "--hosts-max", "9"), 10)):
            listed = hosts_file(self.objects("--name", "x", *options))
            self.assertEqual(listed["join"]["hosts_max"], most)

    def test_how_many_pods_of_hosts_there_are_to_be_is_an_object_of_its_own_which_may_change(self):
        pods = self.objects("--name", "x", "--hosts", "3", "--hosts-min", "3", "--hosts-max", "9")["ConfigMap", "x-pods"]
        self.assertEqual((pods["data"], pods.get("immutable")), ({"hosts": "3"}, None))
        self.assertEqual(pods["metadata"]["annotations"], {"dlrun/hosts-min": "2", "dlrun/hosts-max": "9"})

    def test_hosts_leave_a_node_that_is_gone_soon_and_the_control_pod_as_late_as_others(self):
        specs = self.pod_specs("--name", "x")
        self.assertEqual(specs["x-hosts"]["tolerations"],
                         [{"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}
                          for why in ("not-ready", "unreachable")])
        self.assertEqual(specs["x"]["tolerations"], [])

    def test_pods_of_hosts_have_a_budget_of_which_the_control_pod_says_how_many_have_to_stay(self):
        objects = self.objects("--name", "x")
        budget, template = objects["PodDisruptionBudget", "x-hosts"]["spec"], host_template(objects)
        self.assertEqual(budget["unhealthyPodEvictionPolicy"], "AlwaysAllow")
        self.assertFalse({"minAvailable", "maxUnavailable"} & budget.keys(), "a second apply would take it back")
        chosen = budget["selector"]["matchLabels"].items()
        self.assertLessEqual(chosen, template["metadata"]["labels"].items())
        self.assertFalse(chosen <= objects["Job", "x"]["spec"]["template"]["metadata"]["labels"].items())
        self.assertEqual(template["metadata"]["annotations"], {"dlrun/eviction-budget": "x-hosts", SAFE_TO_EVICT: "true"})

    def test_but_where_nothing_that_they_have_is_elsewhere(self):
        objects = self.objects("--name", "x", "--hosts-min", "1")
        self.assertNotIn("PodDisruptionBudget", {kind for kind, _ in objects})
        self.assertNotIn("annotations", host_template(objects)["metadata"])
        self.assertFalse([rule for rule in objects["Role", "x"]["rules"] if rule["apiGroups"] == ["policy"]])

    def test_no_autoscaler_empties_the_node_of_the_control_pod(self):
        for options in ((), ("--hosts-min", "1")):
            job = self.objects("--name", "x", *options)["Job", "x"]
            self.assertEqual(job["spec"]["template"]["metadata"]["annotations"], {SAFE_TO_EVICT: "false"})

    def test_pods_have_the_priority_that_was_asked_for(self):
        for spec in self.pod_specs("--name", "x", "--priority-class", "low").values():
            self.assertEqual(spec["priorityClassName"], "low")
        for spec in self.pod_specs("--name", "x").values():
            self.assertNotIn("priorityClassName", spec)

    def test_pods_beyond_those_that_the_job_needs_may_have_another_priority(self):
        wish = ("--name", "x", "--priority-class", "high", "--preemptible-priority-class", "low")
        for hosts, least, begin in (("3", "2", "1"), ("3", "1", "0"), ("4", "4", "3")):
            objects = self.objects(*wish, "--hosts", hosts, "--hosts-min", least)
            self.assertLessEqual({"dlrun/preemptible-from": begin, "dlrun/preemptible-priority-class": "low"}.items(),
                                 host_template(objects)["metadata"]["annotations"].items())
            self.assertEqual({spec["priorityClassName"] for spec in specs_of(objects).values()}, {"high"})
            self.assertEqual(hosts_file(objects)["join"]["hosts_min_staying"], int(least))
        self.assertNotIn("hosts_min_staying", hosts_file(self.objects("--name", "x"))["join"])
        self.objects(*wish, "--hosts-max", "2")  # those that come later
        for none in ((), ("--hosts", "3"), ("--hosts", "3", "--hosts-min", "4")):
            code, _, complaint = self.call(*wish, *none)
            self.assertEqual(code, BAD_USAGE)
            self.assertIn("--preemptible-priority-class 'low'", complaint)
            self.assertIn("--hosts-min", complaint)

    def test_pods_are_placed_by_the_scheduler_that_was_asked_for(self):
        for spec in self.pod_specs("--name", "x", "--scheduler", "volcano").values():
            self.assertEqual(spec["schedulerName"], "volcano")
        for spec in self.pod_specs("--name", "x").values():
            self.assertNotIn("schedulerName", spec)

    def test_a_job_in_a_queue_is_suspended_until_that_releases_it(self):
        with_one, without = (self.objects("--name", "x", "--run-claim", "runs", "--secret", "key", *options) for options in (("--queue", "team"), ()))
        job = with_one["Job", "x"]
        self.assertEqual(job["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name"), "team")
        self.assertIs(job["spec"].pop("suspend"), True)
        self.assertEqual(with_one, without)

    def test_a_pod_whose_run_is_in_a_claim_needs_no_room_of_its_node(self):
        specs = self.pod_specs("--name", "x", "--run-claim", "runs")
        self.assertEqual({name: "ephemeral-storage" in spec["containers"][0]["resources"]["requests"] for name, spec in specs.items()},
                         {"x": False, "x-hosts": True})

    def test_hosts_have_the_time_that_the_job_lets_them_take_to_leave(self):
        job = small_data.write_spec(self.bench.folder / "slow.yaml", self.spec() | {"cluster": {"leave_grace_s": 100}})
        hosts = specs_of(self.objects("--name", "x", job=job))["x-hosts"]
        self.assertGreater(hosts["terminationGracePeriodSeconds"], 100)

    def test_the_run_folder_is_where_it_outlives_the_pod_or_that_is_said(self):
        code, _, said = self.call()
        self.assertEqual(code, COMPLETED)
        self.assertIn("--run-claim", said)
        code, told, said = self.call("--run-claim", "runs", "--memory", "4Gi", "--disk", "10Gi")
        self.assertEqual((code, said), (COMPLETED, ""))
        self.assertIn("claimName: runs", told)

    def test_a_file_is_for_its_owner_alone_and_nothing_is_overwritten(self):
        file = self.bench.folder / "out.yaml"
        code, told, _ = self.call("--output", str(file))
        self.assertEqual((code, told), (COMPLETED, ""))
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        before = file.read_bytes()
        code, told, said = self.call("--output", str(file))
        self.assertEqual((code, told), (BAD_USAGE, ""))
        self.assertIn("exists: remove it", said)
        self.assertEqual(file.read_bytes(), before)


if __name__ == "__main__":
    main()
