"""What `dlrun manifests` refuses, naming option or key, value and way out."""

import re

import small_data
from bench_case import main
from manifests_case import BAD_USAGE, writes_manifests


class refuses(writes_manifests):
    def expect_refused(self, *options, words, **how):
        file = self.bench.folder / "refused.yaml"
        code, told, said = self.call(*options, "--output", str(file), **how)
        self.assertEqual((code, told), (BAD_USAGE, ""), options)
        for word in words:
            self.assertIn(word, said)
        self.assertFalse(file.exists())

    def test_names_that_no_object_can_have(self):
        for name in ("A", "a_b", "a.b", "-a", "a-", "1a", "a" * 54, "\u00e4", "a\nb"):
            self.expect_refused("--name", name, words=("--name", "at most 53 small letters", "name another with --name"))
        self.assertIn("namespace: \"7-team\"", self.printed("--namespace", "7-team"))
        for name in ("A", "a.b", "a" * 64, "-a"):
            self.expect_refused("--namespace", name, words=("--namespace", "small letters"))
        for option in ("--data-claim", "--run-claim", "--model-claim", "--archive-claim", "--secret", "--journal-secret", "--metrics-secret", "--service-account", "--priority-class", "--preemptible-priority-class", "--scheduler", "--queue"):
            for name in ("A", "a/b", "a_b", "."):
                self.expect_refused(option, name, words=(option, name))

    def test_a_queue_where_a_suspended_job_would_lose_its_run(self):
        self.expect_refused("--queue", "team", words=("--queue 'team'", "--run-claim"))

    def test_the_name_of_a_job_that_no_object_can_have(self):
        job = small_data.write_spec(self.bench.folder / "named.yaml", self.spec() | {"name": "My_Job"})
        self.expect_refused(job=job, words=("--name 'My_Job'", "name another with --name"))
        self.assertIn("name: my-job\n", self.printed("--name", "my-job", job=job))

    def test_numbers_and_sizes_that_cannot_be(self):
        for option, values in (("--hosts", ("0", "1000", "-1", "two", "010")), ("--cpus", ("0", "1.5", "500m")), ("--hosts-min", ("0", "1001")), ("--control-cpus", ("-1", "4097", "1.5")),
                               ("--pending-patience", ("0", "86401", "1.5", "60s"))):
            for value in values:
                self.expect_refused(f"{option}={value}", words=(option,))
        self.expect_refused("--hosts", "3", "--hosts-max", "2", words=("--hosts-max '2'", "let it be 3 or more"))
        self.expect_refused("--hosts", "2", "--hosts-min", "4", words=("--hosts-min '4'", "there are 3 at most"))
        self.expect_refused("--control-cpus", "0", "--hosts-min", "1", words=("--hosts-min '1'", "--control-cpus 0", "2 or more"))
        self.expect_refused("--memory", "4Gi", "--memory-max", "3Gi", words=("--memory-max '3Gi'", "--memory 4Gi", "let it be 4Gi or more"))
        for option in ("--memory", "--memory-max", "--disk"):
            for value in ("4", "4GB", "4gi", "0Gi", "-1Gi", "4.5Gi", "Gi"):
                self.expect_refused(f"{option}={value}", words=(option, value, "as in 4Gi"))

    def test_pods_that_are_too_small_for_the_job(self):
        for option, value in (("--memory", "100Mi"), ("--disk", "100Mi")):
            self.expect_refused(option, value, words=(f"{option} {value}: a pod of this job needs", f"name {option} ", "dlrun validate FILE --kubernetes"))
        self.expect_refused("--memory", "4Gi", "--set", "data.memory_limit=4GiB", words=("decoded data", "data.memory_limit"))
        self.expect_refused("--disk", "3Gi", "--set", "durability.disk_quota=3GiB",
                            words=("--disk 3Gi", "durability.disk_quota: 3GiB has no room", "name --disk 3328Mi or more", "0.8 of --disk"))

    def test_one_claim_for_data_and_run(self):
        for option in ("--run-claim", "--model-claim", "--archive-claim"):
            self.expect_refused("--data-claim", "same", option, "same", words=(f"{option} 'same'", "a claim of its own"))

    def test_archives_that_would_be_lost_with_the_run_or_cannot_be_made(self):
        self.expect_refused("--run-claim", "same", "--archive-claim", "same", words=("--archive-claim 'same'", "another claim"))
        for every in ("0s", "soon", "31d"):
            self.expect_refused("--archive-claim", "archives", f"--archive-every={every}", words=("--archive-every", "as in 10min"))
        self.expect_refused("--archive-every", "1min", words=("--archive-every requires --archive-claim",))
        job = small_data.write_spec(self.bench.folder / "archived.yaml", self.spec() | {"durability": {"archive": {"folder": "/archive"}}})
        self.expect_refused(job=job, words=("durability.archive", "--archive-claim"))

    def test_images_and_labels_of_nodes_that_cannot_be(self):
        self.expect_refused(image="", words=("--image", "its value is empty"))
        for image in ("two words", "line\nbreak"):
            self.expect_refused(image=image, words=("--image", "expected the name of an image"))
        for label in ("a", "=b", "a=b c", "a/b/c=d", "A..b/c=d", "a=-"):
            self.expect_refused("--node-selector", label, words=("--node-selector", "KEY=VALUE"))
            self.expect_refused("--hosts-node-selector", label, words=("--hosts-node-selector", "KEY=VALUE"))
        for first in ("--node-selector", "--hosts-node-selector"):
            self.expect_refused(first, "a=b", "--hosts-node-selector", "a=c", words=("--hosts-node-selector 'a=c'", "given before"))
        self.expect_refused("--node-selector", "a=b", "--node-selector", "a=c", words=("given before",))

    def test_taints_that_cannot_be(self):
        for taint in ("", "a", "a=b", "a:", ":NoSchedule", "=b:NoSchedule", "a:noschedule", "a:Never", "a b:NoSchedule", "a=b c:NoSchedule", "a/b/c:NoExecute"):
            self.expect_refused("--toleration", taint, words=("--toleration",))
        self.expect_refused("--toleration", "a:NoExecute", "--toleration", "a:NoExecute", words=("--toleration 'a:NoExecute'", "given before"))
        for taint in ("not-ready", "unreachable"):
            self.expect_refused("--toleration", f"node.kubernetes.io/{taint}:NoExecute", words=("dlrun says for how long", "leave it out"))

    def test_jobs_that_cannot_run_on_pods(self):
        for changes, word in (({"cluster": {"placement": "threads"}}, "cluster.placement"), ({"durability": {"log": "off"}}, "durability.log"),
                              ({"cluster": {"device": "cuda"}}, "cluster.device"), ({"cluster": {"gpus": [0]}}, "cluster.gpus"),
                              ({"train": {**self.spec()["train"], "precision": "tf32"}, "cluster": {"device": "auto"}}, "train.precision"),
                              ({"data": {"train": {**self.data, "records": "train-images"}}}, "data.train.records"),
                              ({"data": {"train": {**self.data, "records": "../train-images"}}}, "data.train.records")):
            job = small_data.write_spec(self.bench.folder / "no.yaml", self.spec() | changes)
            self.expect_refused(job=job, words=(word, "write the full path" if "data" in changes else "--gpus" if "gpus" in str(changes) else "let it be"))
        self.expect_refused(job=self.bench.folder / "nowhere.yaml", words=("nowhere.yaml",))
        self.assertNotRegex(self.call("--set", "train.epochs=none")[2], re.compile("Traceback"))
        self.expect_refused("--set", "train.epochs=none", words=("train.epochs",))


if __name__ == "__main__":
    main()
