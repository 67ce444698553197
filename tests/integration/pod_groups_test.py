"""Pods for PS shards beside pods for workers: what is written for them, and what they do when some are lost."""

import collections
import json
import subprocess

import small_data
from bench_case import main
from dlrun_job import wait_until
from manifests_case import BAD_USAGE, COMPLETED, host_template, hosts_file, options_of, specs_of, writes_manifests
from pod_jobs import NAME
from pods_case import on_pods

PS = {f"{NAME}-ps-{index}" for index in range(2)}
WORKERS = {f"{NAME}-hosts-{index}" for index in range(2)}


class has_pods_for_ps_shards(writes_manifests):
    WISH = ("--name", "x", "--run-claim", "runs", "--hosts", "4", "--hosts-min", "3", "--ps-hosts", "2")

    def test_of_their_own_size_on_their_own_nodes(self):
        objects = self.objects(*self.WISH, "--cpus", "16", "--ps-cpus", "4", "--ps-memory", "3Gi", "--hosts-node-selector", "gpu=h200",
                               "--ps-node-selector", "disk=fast", "--node-selector", "zone=a")
        specs = specs_of(objects)
        [ps], [worker], [control] = (specs[name]["containers"] for name in ("x-ps", "x-hosts", "x"))
        self.assertEqual(options_of(ps, "--cpus", "--takes"), ["4", "ps_shards"])
        self.assertEqual(options_of(worker, "--cpus", "--takes"), ["16", "workers"])
        self.assertEqual([one["resources"]["limits"]["cpu"] for one in (ps, worker, control)], ["4", "16", "1"])
        self.assertEqual(ps["resources"]["limits"]["memory"], "3Gi")
        self.assertEqual(worker["resources"]["limits"]["memory"], control["resources"]["limits"]["memory"])
        self.assertEqual((specs["x-ps"]["nodeSelector"], specs["x-hosts"]["nodeSelector"]),
                         ({"zone": "a", "disk": "fast"}, {"zone": "a", "gpu": "h200"}))
        self.assertEqual(objects["ConfigMap", "x-pods"]["data"], {"hosts": "4", "ps": "2"})

    def test_and_begins_when_all_of_those_are_there(self):
        listed = hosts_file(self.objects(*self.WISH))
        self.assertLessEqual({"cpus": 0, "takes": "ps_shards"}.items(), listed["hosts"][0].items())
        self.assertLessEqual({"hosts_min": 5, "hosts_min_staying": 3, "hosts_max": 7}.items(), listed["join"].items())
        of_a_kind = ("--preemptible-priority-class", "low")
        self.assertEqual(hosts_file(self.objects(*self.WISH, *of_a_kind))["join"]["hosts_min_staying"], 3)

    def test_without_gpus_and_their_runtime_class(self):
        specs = self.pod_specs(*self.WISH, "--memory", "32Gi", "--gpus", "2", "--gpu-runtime-class", "nvidia", "--set", "cluster.device=cuda",
                               "--set", "cluster.workers=8")
        self.assertEqual(specs["x-hosts"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "2")
        self.assertNotIn("nvidia.com/gpu", specs["x-ps"]["containers"][0]["resources"]["limits"])
        self.assertNotIn("runtimeClassName", specs["x-ps"])
        self.assertNotIn("nvidia.com/gpu", [one["key"] for one in specs["x-ps"]["tolerations"]])

    def test_or_has_none(self):
        objects = self.objects("--name", "x")
        self.assertIsNone(host_template(objects, "ps-pod.json"))
        self.assertNotIn("--takes", host_template(objects)["spec"]["containers"][0]["args"])
        self.assertEqual(objects["ConfigMap", "x-pods"]["data"], {"hosts": "1"})

    def test_that_are_told_what_they_need(self):
        code, _, complaint = self.call(*self.WISH)
        self.assertEqual(code, 0)
        self.assertRegex(complaint, r"--memory \d+Mi --ps-memory \d+Mi --disk ")

    def test_that_validate_computes_too(self):
        job = small_data.write_spec(self.bench.folder / "here.yaml", self.spec() | {"data": {"train": self.data}})
        done = subprocess.run([self.program, "validate", str(job), "--kubernetes", "--hosts", "4", "--hosts-min", "3", "--ps-hosts", "2"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (COMPLETED, ""))
        self.assertIn("memory of a pod for PS shards, MiB", done.stdout)
        self.assertRegex(done.stdout, r"--hosts 4 --hosts-min 3 --ps-hosts 2 --ps-memory \d+Mi --memory \d+Mi --disk ")

    def test_or_is_refused(self):
        for options, words in ((("--control-cpus", "2"), ("--control-cpus '2'", "--ps-hosts", "leave it out")),
                               (("--ps-memory", "1Mi"), ("--ps-memory 1Mi", "needs", "MiB")),
                               (("--ps-memory", "much"), ("--ps-memory 'much'",)),
                               (("--memory-max", "64Mi", "--ps-memory", "32Gi"), ("--memory-max '64Mi'",)),
                               (("--hosts-max", "998"), ("--ps-hosts '2'", "at most 999 pods", "998")),
                               (("--ps-node-selector", "x"), ("--ps-node-selector 'x'", "KEY=VALUE"))):
            code, told, complaint = self.call(*self.WISH, *options)
            self.assertEqual((code, told), (BAD_USAGE, ""), options)
            for word in words:
                self.assertIn(word, complaint)
        for options in (("--hosts-min", "1"), ("--gpus", "1", "--control-gpus", "1", "--set", "cluster.device=cuda")):
            code, _, complaint = self.call("--name", "x", "--run-claim", "runs", "--ps-hosts", "2", *options)
            self.assertEqual(code, BAD_USAGE)
            self.assertIn("with --ps-hosts", complaint)
        for option, value in (("--ps-cpus", "2"), ("--ps-memory", "1Gi"), ("--ps-node-selector", "a=b")):
            code, _, complaint = self.call("--name", "x", option, value)
            self.assertEqual(code, BAD_USAGE)
            self.assertIn(f"{option} '{value}': it is of pods for PS shards: say how many with --ps-hosts", complaint)


class on_both_kinds_of_pods(on_pods):
    host_count = 9
    ps_hosts = len(PS)

    def hosts_of(self, *kinds):
        """On which roles of these kinds are."""
        code, told, _ = self.control.execute("/usr/local/bin/dlrun", "explain", f"/var/lib/dlrun/{NAME}", "--json")
        return {one["host"] for one in json.loads(told)["roles"] if one["role"] in kinds} if code == COMPLETED else set()

    def wait_until_on(self, hosts, *kinds):
        wait_until(lambda: self.hosts_of(*kinds) == hosts, f"{kinds} are on {hosts}")

    def test_each_kind_of_role_has_its_own_and_comes_back_there(self):
        self.cluster.nodes.count = self.host_count  # each pod has a node of its own
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.assertEqual(self.hosts_of("ps_shard"), PS)
        self.assertEqual(self.hosts_of("keeper"), PS)
        self.assertEqual(self.hosts_of("worker"), WORKERS)
        self.assertEqual(self.made_pods(), {f"{name}-1" for name in PS | WORKERS})
        victim = next(one for one in self.hosts_pods if one.host_name == f"{NAME}-ps-1")
        victim.delete()
        wait_until(lambda: f"{NAME}-ps-1-2" in self.made_pods(), "its successor is made")
        self.wait_until_trains(beyond=step)
        self.wait_until_on(PS, "keeper")  # those that went to pods for workers meanwhile too
        self.wait_until_on(PS, "ps_shard")
        report = self.expect_complete(spec)
        self.assertEqual(report["steps_redone"], 0)


    def test_workers_wait_for_a_pod_of_their_kind(self):
        self.cluster.nodes.count = self.host_count
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.cluster.nodes.cordon(*range(self.host_count))  # no other comes meanwhile
        for one in self.hosts_pods:
            if one.host_name in WORKERS:
                self.api.space.end(one.object)
        wait_until(lambda: [one for one in self.events("role-waits") if one["role"] == "worker"], "a worker waits for a host")
        self.cluster.nodes.uncordon(*range(self.host_count))
        self.wait_until_trains(beyond=step)
        self.assertLessEqual(self.hosts_of("worker"), WORKERS)
        report = self.expect_complete(spec)
        self.assertEqual(report["steps_redone"], 0)
        self.assertNotIn("control", {event["host"] for event in self.events("role-placed") if event["role"] == "worker"})


class on_two_nodes(on_pods):
    host_count = 9
    pod_hosts = 3
    LOST = 1

    def stores_by_shard(self):
        """PS shard -> nodes that have a store of it."""
        nodes = {one.host_name: one.node for one in self.pods_of_hosts()} | {"control": self.control.node}
        code, told, _ = self.control.execute("/usr/local/bin/dlrun", "explain", f"/var/lib/dlrun/{NAME}", "--json")
        stores = collections.defaultdict(list)
        for one in json.loads(told)["roles"] if code == COMPLETED else ():
            if one["role"] in ("ps_shard", "keeper"):
                stores[one["index"]].append(nodes.get(one["host"]))
        return stores

    def test_a_copy_is_on_another_one_than_its_ps_shard_and_no_step_is_lost_with_a_node(self):
        """Of four pods two are on each, so that a copy could be beside its PS shard on the same node."""
        self.cluster.nodes.count = 2
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.assertEqual((self.control.node, len({one.node for one in self.hosts_pods})), (0, 2))
        stores = self.stores_by_shard()
        self.assertEqual(set(stores), {0, 1})
        for nodes in stores.values():
            self.assertEqual(sorted(nodes), [0, 1])
        self.cluster.nodes.lose(self.LOST)
        self.cluster.nodes.count = 3  # another one comes
        with self.cluster.lock:
            self.cluster.nodes.look_at_waiting()
        self.wait_until_trains(beyond=step)
        self.cluster.nodes.replace(self.LOST)
        report = self.expect_complete(spec)
        self.assertEqual(report["steps_redone"], 0)


if __name__ == "__main__":
    main()
