"""A job on pods: what `dlrun manifests` prints, run by small_cluster.py."""

import datetime
import json
import secrets
import subprocess

import played_kubectl
import small_cluster
from bench_case import main
from dlrun_job import wait_until
from pod_nodes import kept_off, name_of
from pods_case import COMPLETED, HOSTS, INTERRUPTED, NAME, on_pods
from waiting import PATIENCE_S

OTHER_BITS = 4  # exit code of an agent
PATCH_BUDGET = f"patch poddisruptionbudgets/{NAME}-hosts"
REPLACED_WITHIN_S = 3  # of the time at which the job gave its host up


def seconds_of(stamp):
    """Of an event, by the clock of this host."""
    return datetime.datetime.fromisoformat(stamp).timestamp()


def lesser_isa(program):
    version = subprocess.run([program, "version", "--json"], capture_output=True, text=True, check=True)
    return "avx" if json.loads(version.stdout)["isa"] == "avx2" else "avx2"


def other_isa(program):
    """Variables by which a processor has another instruction set."""
    return {"ONEDNN_MAX_CPU_ISA": lesser_isa(program).upper()}


class trains(on_pods):
    def test_with_the_bits_of_one_host_and_all_pods_end(self):
        spec = self.small_job()
        self.start(spec)
        report = self.expect_complete(spec)
        self.assertEqual(report["steps_redone"], 0)
        self.assertEqual({event["host"] for event in self.events("host-joined")}, {f"{NAME}-hosts-{index}" for index in range(HOSTS)})
        self.assertEqual({event["host"] for event in self.events("role-placed")},
                         {"control", *(f"{NAME}-hosts-{index}" for index in range(HOSTS))})
        self.assertEqual(self.control.exit_codes, [COMPLETED])
        self.expect_ended(*self.hosts_pods)
        self.assertEqual(self.made_pods(), {f"{NAME}-hosts-{index}-1" for index in range(HOSTS)})
        self.assertIn("data: ", "".join(path.read_text(errors="replace") for path in [one.log for one in self.hosts_pods]))

    def test_with_a_secret_that_was_there_and_values_of_the_command_line(self):
        spec = self.small_job(workers=1)
        key = secrets.token_hex(32)
        self.cluster.objects["Secret", "ours"] = {"kind": "Secret", "metadata": {"name": "ours"}, "stringData": {"key": key}}
        self.start(spec, "--secret", "ours", "--set", "cluster.workers=3", "--set", "name=pods")
        self.expect_complete(spec)
        self.assertNotIn("Secret", {kind for kind, name in self.cluster.objects if name != "ours"})
        self.assertEqual(len({event["index"] for event in self.events("role-placed") if event["role"] == "worker"}), 3)


class loses(on_pods):
    def test_a_container_of_a_host_that_is_started_again_in_place(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        victim = self.hosts_pods[0]
        victim.kill_container()
        wait_until(lambda: len(self.events("host-joined")) == HOSTS + 1, "it joins again")
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)
        self.expect_ended(victim, before=1)
        self.assertEqual({event["host"] for event in self.events("host-lost")}, {victim.host_name})
        self.assertEqual(len(self.made_pods()), HOSTS, "it kept its pod, and its stores")

    def test_a_pod_of_a_host_that_another_one_replaces_under_a_new_address(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        victim = self.hosts_pods[1]
        wait_until(lambda: self.have_to_stay() == HOSTS - 1, "one pod may be evicted")
        told = self.api.asked.count(PATCH_BUDGET)
        victim.delete()
        self.assertEqual(victim.exit_codes, [INTERRUPTED], victim.said())
        wait_until(lambda: len(self.events("host-joined")) == HOSTS + 1, "its successor joins")
        [successor] = [one for one in self.cluster.pods_of(f"{NAME}-hosts") if one not in self.hosts_pods]
        self.assertEqual((victim.name, successor.name), (f"{NAME}-hosts-1-1", f"{NAME}-hosts-1-2"))
        self.assertEqual(successor.host_name, victim.host_name)
        self.assertNotEqual(successor.host, victim.host)
        self.wait_until_trains(beyond=step)
        wait_until(lambda: self.have_to_stay() == HOSTS - 1, "another pod may be evicted")
        self.assertGreaterEqual(self.api.asked.count(PATCH_BUDGET), told + 2, "none was to be while its successor came")
        self.expect_complete(spec)
        self.assertEqual({event["host"] for event in self.events("host-left")}, {victim.host_name})
        self.assertEqual(self.events("host-lost"), [])

    def test_a_pod_that_others_may_displace_and_keeps_workers_on_the_next(self):
        spec = self.unhurried_spec()
        self.start(spec, "--hosts-min", str(HOSTS), "--priority-class", "high", "--preemptible-priority-class", "low")
        step = self.wait_until_trains()["step"]
        classes = {name: made["spec"]["priorityClassName"] for (kind, name), made in list(self.cluster.objects.items()) if kind == "Pod"}
        self.assertEqual(classes, {self.control.name: "high", f"{NAME}-hosts-0-1": "high", f"{NAME}-hosts-1-1": "low"})
        victim, placed = self.hosts_pods[1], len(self.events("role-placed"))
        victim.delete()
        wait_until(lambda: len(self.events("host-joined")) == HOSTS + 1, "its successor joins")
        self.assertEqual(self.cluster.objects["Pod", f"{NAME}-hosts-1-2"]["spec"]["priorityClassName"], "low")
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)
        told = {event["host"] for event in self.events("host-joined") if "may go at short notice" in event["text"]}
        self.assertEqual(told, {victim.host_name})
        self.assertLessEqual({event["role"] for event in self.events("role-placed")[placed:] if event["host"] == victim.host_name}, {"worker"})

    def test_a_container_that_is_out_of_memory_twice_and_its_next_pod_has_more(self):
        spec = self.unhurried_spec()
        self.start(spec, "--memory-max", "8Gi")
        step = self.wait_until_trains()["step"]
        victim = self.hosts_pods[1]
        victim.kill_container("OOMKilled")
        wait_until(lambda: len(self.events("host-joined")) == HOSTS + 1, "it joins again from its pod")
        self.assertEqual(len(self.made_pods()), HOSTS, "the first time it is started again")
        victim.kill_container("OOMKilled")
        wait_until(lambda: f"{NAME}-hosts-1-2" in self.made_pods(), "its successor is made")
        [container] = self.cluster.objects["Pod", f"{NAME}-hosts-1-2"]["spec"]["containers"]
        for kind in ("requests", "limits"):
            self.assertEqual(container["resources"][kind]["memory"], "3072Mi")
        wait_until(lambda: "was out of memory twice, with 2048Mi: its next pod has 3072Mi" in self.control.said(), "it says why")
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)

    def have_to_stay(self):
        """So many pods of hosts, when others are evicted."""
        return self.cluster.objects["PodDisruptionBudget", f"{NAME}-hosts"]["spec"].get("minAvailable")

    def lost_at(self, host):
        """When its root gave it up, by the clock of this host."""
        return next((event["time"] for event in self.events("host-lost") if event["host"] == host), None)

    def test_a_node_whose_pod_another_one_replaces_before_kubernetes_notices(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        victim, successor = self.hosts_pods[1], f"{NAME}-hosts-1-2"
        victim.cut_off()
        wait_until(lambda: successor in self.made_pods(), "its successor is made")
        self.assertEqual(self.cluster.objects["Pod", victim.name]["status"]["phase"], "Running")
        lost_s = seconds_of(self.lost_at(victim.host_name))
        self.assertLessEqual(self.api.created["Pod", successor] - lost_s, REPLACED_WITHIN_S)
        reason = f"made pod {successor}: the job has given up the host of {victim.name}"
        wait_until(lambda: reason in self.control.said(), "it says why")
        wait_until(lambda: len(self.events("host-joined")) == HOSTS + 1, "its successor joins")
        wait_until(lambda: "deletionTimestamp" in self.cluster.objects["Pod", victim.name]["metadata"], "it is to go when its node is back")
        victim.come_back()
        wait_until(lambda: victim.name not in self.pods_told(), "it goes")
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)
        self.assertEqual(len(self.events("host-joined")), HOSTS + 1, "the pod that was given up was not let in again")
        self.assertEqual(self.made_pods(), {one.name for one in self.hosts_pods} | {successor})

    def test_its_watch_and_the_history_of_the_server_and_no_pod_for_that(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        for spoil in (self.api.cut_streams, self.api.compact):
            asked = len(self.api.asked)
            spoil()
            wait_until(lambda asked=asked: "watch pods" in self.api.asked[asked:], "it watches again")
        self.wait_until_trains(beyond=step)
        self.assertEqual(len(self.made_pods()), HOSTS)
        victim = self.hosts_pods[0]
        victim.delete()
        wait_until(lambda: len(self.events("host-joined")) == HOSTS + 1, "its successor joins")
        self.expect_complete(spec)
        self.assertEqual(len(self.made_pods()), HOSTS + 1)

    def test_the_container_of_the_root_that_takes_over_what_runs(self):
        spec = self.unhurried_spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.control.kill_container()
        wait_until(lambda: self.events("roles-adopted"), "the next root takes over")
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)
        self.assertEqual(len(self.control.exit_codes), 2)
        self.assertEqual(self.events("host-lost"), [])
        self.expect_ended(*self.hosts_pods)
        self.assertEqual(len(self.made_pods()), HOSTS, "it adopts them")

    def test_the_pod_of_the_root_that_another_one_replaces_with_the_run_folder(self):
        spec = self.spec_of_patient_hosts()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.control.delete()
        self.assertEqual(self.control.exit_codes, [INTERRUPTED], self.control.said())
        self.expect_successor(spec, step)

    def test_the_node_of_the_root_that_somebody_deletes_then(self):
        spec = self.spec_of_patient_hosts()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.cluster.nodes.lose(self.control.node)
        self.cluster.nodes.replace(self.control.node)
        self.expect_successor(spec, step)

    def spec_of_patient_hosts(self):
        spec = self.unhurried_spec()
        spec["cluster"]["orphan_grace_s"] = PATIENCE_S  # they end before only if they do not find the successor
        return spec

    def expect_successor(self, spec, step):
        """Another pod goes on at another address, and takes over what runs on the hosts, which hear of it at once."""
        wait_until(lambda: self.events("roles-adopted"), "the next root takes over")
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)
        [successor] = [one for one in self.cluster.pods if one.job is self.control.job and one is not self.control]
        self.assertNotEqual(successor.host, self.control.host)
        self.expect_ended(*self.hosts_pods)
        self.assertEqual(self.events("host-lost"), [])
        self.assertEqual(len(self.made_pods()), HOSTS, "it adopts them")


class has_trained(on_pods):
    def test_and_loses_the_container_of_the_root_before_the_model_is_in_the_claim(self):
        spec = self.unhurried_spec()
        self.start(spec)
        self.hold_the_end(spec)
        self.control.kill_container()
        report = (self.run_dir / "report.json").read_bytes()
        digest = self.expect_complete(spec)["parameters_sha256"]
        self.assertEqual((self.run_dir / "report.json").read_bytes(), report, "nothing was trained")
        self.assertEqual(self.control.exit_codes[1:], [COMPLETED], self.control.said())
        self.expect_ended(*self.hosts_pods)
        self.assertEqual(len(self.events("stores-collected")), 1)
        exported = subprocess.run([self.program, "export", str(self.run_dir), "--output", str(self.bench.folder / "model.safetensors"),
                                   "--json"], capture_output=True, text=True)
        self.assertEqual(exported.returncode, COMPLETED, exported.stderr)
        self.assertIn(digest, exported.stdout)


class kubectl(played_kubectl.played_kubectl):
    """Of a small cluster: what it is asked for is done."""

    def __init__(self, folder, cluster):
        super().__init__(folder)
        self.cluster, self.objects = cluster, cluster.objects

    def on_apply(self, words, given):
        answer = super().on_apply(words, given)
        if "--dry-run=server" not in words:
            for kind, name in sorted(small_cluster.read_manifests(given), reverse=True):
                if kind == "Job" and not self.objects[kind, name]["spec"].get("suspend"):
                    self.cluster.start(name)
                elif kind == "Job":
                    self.cluster.on_job_changed(name)
        return answer

    def on_patch(self, words, given):
        answer = super().on_patch(words, given)
        kind, name = played_kubectl.key_of(words[0])
        if kind != "Job":
            return answer
        self.cluster.on_job_changed(name)
        return answer

    def on_delete(self, words, given):
        answer = super().on_delete(words, given)
        self.cluster.api.space.collect_garbage()
        return answer

    def pods_of(self, selector):
        wanted = dict(pair.split("=") for pair in selector.split(",")).items()
        return [{"metadata": {"name": one.name} | ({"deletionTimestamp": "now"} if one.is_deleted else {}),
                 "status": {"phase": one.phase, "containerStatuses": [{"state": {"running": {}} if one.main_process() else {}}]}}
                for one in self.cluster.pods if wanted <= one.labels.items()]

    def execute(self, pod, words):
        [found] = [one for one in self.cluster.pods if one.name == pod]
        self.executed = found.execute(*words)
        return super().execute(pod, words)


class is_run_through_kubectl(on_pods):
    def setUp(self):
        super().setUp()
        self.kubectl = self.enterContext(kubectl(self.bench.folder / "bin", self.cluster))

    def call(self, *words):
        """@returns exit code, output, complaints"""
        done = subprocess.run(words if words[0] == self.program else [self.program, *words], env=self.kubectl.environment, capture_output=True,
                              text=True)
        return done.returncode, done.stdout, done.stderr

    def submit(self, spec):
        self.assertEqual(self.call(*self.words_for("submit", spec)), (COMPLETED, f"submitted k8s://{NAME}\n", ""))
        [self.control] = self.cluster.pods_of(NAME)

    def status(self):
        code, told, _ = self.call("status", f"k8s://{NAME}", "--json")
        return json.loads(told) if code == COMPLETED else {}

    def test_from_its_beginning_to_its_end(self):
        spec = self.unhurried_spec()
        self.submit(spec)
        self.assertEqual(self.call(*self.words_for("submit", spec))[0], 2)
        self.wait_until_trains()
        self.assertEqual(self.call("scale", f"k8s://{NAME}", "--workers", "2", "--wait")[0], COMPLETED)
        self.assertEqual(self.status()["workers"], {"wanted": 2, "present": 2, "leaving": 0})
        code, _, complaint = self.call("scale", f"k8s://{NAME}", "--workers", "1000")
        self.assertEqual((code, complaint.count("\n"), "exit code" in complaint), (2, 1, False), complaint)
        code, told, complaint = self.call("events", f"k8s://{NAME}", "--json")
        self.assertEqual((code, complaint), (COMPLETED, ""))
        self.assertIn("workers-scaled", {json.loads(line)["event"] for line in told.splitlines()})
        code, told, _ = self.call("logs", f"k8s://{NAME}", "--role", "worker")
        self.assertEqual(code, COMPLETED)
        self.assertIn(f"@{NAME}-hosts-", told)
        self.expect_complete(spec)
        code, told, complaint = self.call("status", f"k8s://{NAME}")
        self.assertEqual((code, complaint), (COMPLETED, ""))
        self.assertIn(f"{NAME}: completed\nexit code 0\ncompleted: ", told)
        self.assertEqual(self.call("delete", f"k8s://{NAME}")[::2], (COMPLETED, ""))
        wait_until(lambda: not self.cluster.objects, "nothing is left")

    def test_and_is_deleted_while_it_trains_and_no_pod_is_made_for_that(self):
        self.submit(self.unhurried_spec())
        self.wait_until_trains()
        code, told, complaint = self.call("delete", f"k8s://{NAME}")
        self.assertEqual((code, complaint), (COMPLETED, ""))
        self.assertIn(f"deleted configmap/{NAME}-pods\n", told)
        wait_until(lambda: not self.cluster.objects, "nothing is left")
        self.assertEqual(self.control.exit_codes, [INTERRUPTED], self.control.said())
        self.assertEqual(len(self.made_pods()), HOSTS)

    def test_with_more_pods_and_fewer(self):
        spec = self.unhurried_spec()
        code, _, complaint = self.call(*self.words_for("submit", spec, "--hosts-max", "3", "--hosts-min", "2"))
        self.assertEqual(code, COMPLETED, complaint)
        [self.control] = self.cluster.pods_of(NAME)
        step = self.wait_until_trains()["step"]
        self.assertEqual(self.call("scale", f"k8s://{NAME}", "--hosts", "3"), (COMPLETED, "3 pods of hosts are wanted\n", ""))
        wait_until(lambda: f"{NAME}-hosts-2" in {event["host"] for event in self.events("host-joined")}, "the third joins")
        self.assertEqual(self.call("scale", f"k8s://{NAME}", "--hosts", "1"), (COMPLETED, "1 pods of hosts are wanted\n", ""))
        wait_until(lambda: {event["host"] for event in self.events("host-left")} == {f"{NAME}-hosts-1", f"{NAME}-hosts-2"}, "two leave")
        wait_until(lambda: self.status().get("step", 0) > step, "it goes on")
        self.expect_complete(spec)
        self.assertEqual(self.events("host-lost"), [])

    def test_and_goes_on_where_it_was_stopped(self):
        spec = self.unhurried_spec()
        self.submit(spec)
        step = self.wait_until_trains()["step"]
        self.assertEqual(self.call("stop", f"k8s://{NAME}"), (COMPLETED, "stopping\n", ""))
        wait_until(lambda: self.control.exit_codes, "the control pod ends")
        self.assertEqual(self.control.exit_codes, [INTERRUPTED], self.control.said())
        self.assertGreaterEqual(self.status()["step"], step)
        code, told, complaint = self.call("status", f"k8s://{NAME}")
        self.assertEqual((code, complaint), (COMPLETED, ""))
        self.assertRegex(told, rf"{NAME}: suspended, step \d+\n.*lets it go on")
        self.kubectl.on_patch([f"job.batch/{NAME}", '--patch={"spec":{"suspend":false}}'], "")
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)


    def test_in_a_queue_that_releases_it_and_takes_it_back_until_it_is_deleted(self):
        code, _, complaint = self.call(*self.words_for("submit", self.unhurried_spec(), "--queue", "team"))
        self.assertEqual(code, COMPLETED, complaint)
        self.assertEqual(self.cluster.pods, [])
        self.assertIn(f"{NAME}: suspended\n", self.call("status", f"k8s://{NAME}")[1])
        self.suspend(False)
        self.wait_until_trains()
        control = self.control_pod()
        self.suspend()
        wait_until(lambda: control.exit_codes and not self.pods_told(), "nothing of it runs")
        self.assertEqual(self.call("delete", f"k8s://{NAME}")[::2], (COMPLETED, ""))
        wait_until(lambda: not self.cluster.objects, "nothing is left")


class says(on_pods):
    def test_which_pod_runs_and_does_not_reach_the_root_and_so_does_that_pod(self):
        spec = self.small_job()
        where = self.cluster.free_hosts[HOSTS]  # of the last pod
        self.hosts.set_link(where, "down")
        self.start(spec)
        [held_up] = wait_until(lambda: self.status().get("held_up_by"), "it is held up")
        [silent] = [one for one in self.hosts_pods if one.host == where]
        addresses = [self.hosts.address(one.host) for one in (silent, self.control)]
        for word in (f"pod {silent.name} ({addresses[0]}) has run for 30 s", f"control pod {self.control.name} ({addresses[1]}) at TCP port 7700",
                     "a NetworkPolicy", f"kubectl logs {silent.name}"):
            self.assertIn(word, held_up)
        self.assertEqual(self.status()["status"], "waiting", "the job has not begun")
        self.assertEqual(self.control.said().count(held_up), 1)
        wait_until(lambda: f"to join at {NAME}:7700 by TCP, from {addresses[0]} to {addresses[1]}:7700; what came of it last: " in silent.said(),
                   "the pod says so too")
        self.hosts.set_link(where, "up")
        self.wait_until_trains()
        self.assertNotIn("held_up_by", self.status())
        self.expect_complete(spec)


class refuses(on_pods):
    def test_no_node_for_its_instruction_set_where_one_is_named_that_all_have(self):
        spec = self.small_job()
        self.cluster.nodes.variables[2] = other_isa(self.program)
        self.start(spec, "--set", f"cluster.cpu_level={lesser_isa(self.program)}")
        spec["cluster"]["cpu_level"] = lesser_isa(self.program)
        self.expect_complete(spec)
        self.assertIn(2, {one.node for one in self.hosts_pods})
        self.assertEqual(self.made_pods(), {f"{NAME}-hosts-{index}-1" for index in range(HOSTS)})

    def test_a_node_that_would_compute_other_bits_and_has_a_pod_made_elsewhere(self):
        spec = self.unhurried_spec()
        self.cluster.nodes.variables[2] = other_isa(self.program)  # behind those of the control pod and of the first host
        other = name_of(2)
        self.start(spec)
        refused, successor = (f"{NAME}-hosts-1-{number}" for number in (1, 2))
        wait_until(lambda: successor in self.made_pods(), "another pod is made")
        [refused_pod] = [one for one in self.cluster.pods if one.name == refused]
        self.assertEqual((refused_pod.node, refused_pod.exit_codes[0]), (2, OTHER_BITS), refused_pod.said())
        self.assertEqual(kept_off(self.cluster.objects["Pod", successor]), [other])
        reason = f"made pod {successor}: node {other}, on which {refused} is, would compute other bits"
        wait_until(lambda: reason in self.control.said(), "it says why")
        told = self.wait_until_trains()
        [held_up] = [one for one in told["held_up_by"] if "other bits" in one]
        self.assertIn(f"no pod of a host is made for node {other}, which would compute other bits", held_up)
        self.expect_complete(spec)
        self.assertEqual(self.made_pods(), {f"{NAME}-hosts-0-1", refused, successor})

    def test_a_host_with_another_key_which_waits_for_the_root_of_its_own(self):
        self.cluster.apply(self.manifests(self.small_job()))
        with self.cluster.lock:  # no other pod is made meanwhile
            [self.control] = self.cluster.start(NAME)
            own = self.cluster.objects["Secret", f"{NAME}-key"]["stringData"]
            right, own["key"] = own["key"], secrets.token_hex(32)
        wait_until(lambda: "hosts join at" in self.control.said(), "the root waits")
        stranger = wait_until(lambda: self.cluster.pods_of(f"{NAME}-hosts"), "a stranger is there")[0]
        wait_until(lambda: "does not take this key" in stranger.said(), "it says so")
        wait_until(lambda: len(self.events("host-refused")) > 1, "the root says so, and again")
        self.assertEqual((stranger.exit_codes, stranger.said().count("does not take this key")), ([], 1))
        stranger.delete()
        self.assertEqual(stranger.exit_codes, [INTERRUPTED], stranger.said())
        self.assertIn("was not let in: it has another key", self.events("host-refused")[0]["text"])
        self.assertNotIn(right, self.control.said() + stranger.said())


if __name__ == "__main__":
    main()
