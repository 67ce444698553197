"""Jobs on pods whose journal is in an etcd: the control pod may be lost with its run folder, and no host notices (R40)."""

import json
import os
import shutil

from bench_case import main
from dlrun_job import wait_until
from pods_case import COMPLETED, HOSTS, INTERRUPTED, NAME, on_pods
from pods_journal_case import MOUNTED, with_an_etcd
from small_cluster import read_manifests

FAILED, BAD_INPUT = 1, 2


class loses_its_control_pod(with_an_etcd):
    def test_with_its_folder(self):
        spec = self.spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        folder = self.run_dir
        self.control.delete()
        self.assertEqual(self.control.exit_codes, [INTERRUPTED], self.control.said())
        self.assertNotEqual(self.run_dir, folder)
        self.expect_followed(spec, step)

    def test_with_its_node_and_nobody_deletes_that(self):
        spec = self.spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        node = self.control.node
        self.cluster.nodes.lose(node)
        self.cluster.nodes.evict(node)
        self.expect_followed(spec, step)

    def test_which_lives_on_behind_a_cut_network_and_deletes_no_pod(self):
        """It reaches the API server, and neither hosts nor etcd."""
        spec = self.spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        old = self.control
        self.cut_off(old)
        wait_until(lambda: len(self.control_pods()) == 2, "there is another control pod")
        wait_until(lambda: self.events("roles-adopted"), "the next root takes over")
        self.assertEqual(old.exit_codes, [], "it lives")
        self.wait_until_trains(beyond=step)
        self.assertFalse([one for one in self.api.asked if one.startswith("delete pods")])
        self.hosts.heal(old.host)
        wait_until(lambda: old.exit_codes, "it hears that it was followed")
        self.assertEqual(old.exit_codes[0], FAILED, old.said())
        self.assertIn("another root has taken the run over, as root 2", old.said())
        old.come_back()
        self.expect_followed(spec, step)

    def cut_off(self, pod):
        """Its node is not heard of any more; so Kubernetes wants it to end."""
        pod.is_cut_off = True
        api = self.hosts.address(self.api.where)
        self.hosts.filter(pod.host, "add table ip lost", "delete table ip lost",
                          f"table ip lost {{ chain heard {{ type filter hook input priority 0; iif lan ip saddr != {api} drop; }};"
                          f" chain said {{ type filter hook output priority 0; oif lan ip daddr != {api} drop; }}; }}")
        self.cluster.nodes.evict(pod.node)


class has_two_control_pods(with_an_etcd):
    def test_from_the_beginning_of_which_one_waits(self):
        spec = self.spec()
        self.cluster.apply(self.manifests(spec))
        job = self.cluster.objects["Job", NAME]
        both = [self.cluster.make_pod(job) for _ in range(2)]
        waiting = wait_until(lambda: next((one for one in both if "this one waits" in one.said()), None), "one finds the run of the other")
        [self.control] = [one for one in both if one is not waiting]
        wait_until(lambda: len(self.pods_of_hosts()) == HOSTS, "the pods of hosts are there")
        waiting.is_replaced = True  # no third one
        waiting.delete()
        self.assertEqual(waiting.exit_codes, [INTERRUPTED], waiting.said())
        self.wait_until_trains()
        self.cluster.pods.remove(waiting)
        self.addCleanup(waiting.thread.join)
        self.expect_end(spec)
        self.assertEqual(self.control.exit_codes, [COMPLETED], self.control.said())
        self.assertEqual(len(self.made_pods()), HOSTS)


class has_trained(with_an_etcd):
    def test_and_loses_the_node_of_the_root_before_the_model_is_there(self):
        spec = self.spec()
        self.start(spec)
        self.hold_the_end(spec)
        node = self.control.node
        self.cluster.nodes.lose(node)
        self.cluster.nodes.evict(node)
        self.expect_end(spec)
        self.assertEqual(self.control_pods()[-1].exit_codes, [COMPLETED], self.control_pods()[-1].said())
        self.assertEqual(len(self.events("stores-collected")), 1)
        self.assertNotIn("role-started", {event["event"] for event in self.events()})
        self.expect_ended(*self.hosts_pods)


    def test_and_loses_the_node_of_the_root_while_the_model_cannot_be_written(self):
        """No host has heard that the job is over: each still has its stores."""
        spec = self.spec()
        self.start(spec)
        self.wait_until_trains()
        self.close_claim()
        self.pauses.end()
        wait_until(lambda: "it is tried again in" in self.control.said(), "the root has all that the hosts have")
        self.assertEqual([one.exit_codes for one in self.hosts_pods], [[]] * HOSTS)
        node = self.control.node
        self.cluster.nodes.lose(node)
        self.open_claim()
        self.cluster.nodes.evict(node)
        self.expect_end(spec)
        self.assertEqual(self.control_pods()[-1].exit_codes, [COMPLETED], self.control_pods()[-1].said())
        self.assertEqual(len(self.events("stores-collected")), 1)
        self.assertEqual(len(self.made_pods()), HOSTS)
        self.expect_ended(*self.hosts_pods)

    def test_and_loses_the_root_when_the_model_is_there_and_kubernetes_does_not_know(self):
        """Nor need the hosts be there any more."""
        spec = self.spec()
        self.start(spec)
        self.wait_until_trains()
        self.api.stop()
        self.pauses.end()
        wait_until(lambda: all(one.exit_codes for one in self.hosts_pods), "the hosts have heard that the job is over")
        node = self.control.node
        self.cluster.nodes.lose(node)
        self.api.come_back()
        self.cluster.nodes.evict(node)
        wait_until(lambda: NAME in self.cluster.jobs_over, "the Job is complete")
        wait_until(lambda: not self.pods_told(), "the pods of hosts are deleted")
        self.assertEqual(self.control_pods()[-1].exit_codes, [COMPLETED], self.control_pods()[-1].said())
        self.assertEqual(self.annotations()["dlrun/exit-code"], str(COMPLETED))
        self.assertEqual(len(self.made_pods()), HOSTS)
        del spec["cluster"]["journal"]
        self.assertIn(self.undisturbed(spec)["parameters_sha256"], self.exported())


class has_a_claim_for_its_run_and_no_etcd(on_pods):
    claims = ("--run-claim", "runs", "--model-claim", "models")

    def test_and_fails_where_the_model_cannot_be_written_which_the_next_job_does(self):
        spec = self.unhurried_spec()
        self.start(spec)
        self.wait_until_trains()
        self.close_claim()
        self.pauses.end()
        wait_until(lambda: self.cluster.condition(NAME), "the Job is over")
        self.assertEqual(self.cluster.condition(NAME), "Failed")
        self.assertEqual(self.control.exit_codes[0], FAILED, self.control.said())
        report = json.loads((self.run_dir / "report.json").read_text())
        told = self.annotations()
        self.assertIn(report["parameters_sha256"], told["dlrun/summary"])
        for word in (f"/model/{NAME}.safetensors", "Permission denied", "(claim 'models')", "the run in claim 'runs' has it", "dlrun export"):
            self.assertIn(word, told["dlrun/reason"])
        wait_until(lambda: not self.cluster.pods_of(NAME) and not self.pods_told(), "no pod is left")
        self.open_claim()
        self.submit_again(spec)
        wait_until(lambda: NAME in self.cluster.jobs_over, "the next Job is complete")
        self.assertIn(report["parameters_sha256"], self.exported())
        self.assertEqual(self.undisturbed(spec)["parameters_sha256"], report["parameters_sha256"])

    def submit_again(self, spec):
        with self.cluster.lock:
            del self.cluster.objects["Job", NAME]
        self.cluster.api.space.collect_garbage()
        self.cluster.apply(self.manifests(spec))
        [self.control] = self.cluster.start(NAME)


class is_stopped(with_an_etcd):
    def test_and_goes_on_in_another_folder(self):
        spec = self.spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.suspend()
        wait_until(lambda: self.control.exit_codes, "the control pod ends")
        self.assertEqual(self.control.exit_codes, [INTERRUPTED], self.control.said())
        self.assertIn("interrupted by a signal", self.control.said())
        self.suspend(False)
        self.wait_until_trains(beyond=step)
        self.expect_end(spec)
        self.assertEqual(len(self.made_pods()), HOSTS)


class has_a_claim_too(with_an_etcd):
    claims = ("--run-claim", "runs")

    def test_whose_volume_is_lost(self):
        spec = self.spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.control.is_replaced = True  # not before the other volume is there
        self.control.delete()
        shutil.rmtree(self.run_dir)
        self.cluster.make_pod(self.control.job)
        wait_until(lambda: self.events("roles-adopted"), "the next root takes over")
        self.wait_until_trains(beyond=step)
        del spec["cluster"]["journal"]
        self.expect_complete(spec)
        self.assertEqual(len(self.made_pods()), HOSTS)


    def test_in_which_it_waits_while_its_job_is_suspended(self):
        spec = self.spec()
        self.start(spec)
        step = self.wait_until_trains()["step"]
        self.suspend()
        wait_until(lambda: self.control.exit_codes, "the control pod ends")
        wait_until(lambda: not self.pods_told(), "the pods of hosts are deleted")
        self.suspend(False)
        self.wait_until_trains(beyond=step)
        del spec["cluster"]["journal"]
        self.assertEqual(self.expect_complete(spec)["steps_redone"], 0)


class is_begun_again(with_an_etcd):
    """A Job of the same name, after `kubectl delete`."""

    def test_with_a_run_of_its_own(self):
        spec = self.spec()
        self.start(spec)
        self.wait_until_trains()
        self.delete_job()
        self.pauses.end()
        self.start(spec)
        report = self.expect_end(spec)
        self.assertEqual(self.events("roles-adopted"), [])
        prefixes = {"/".join(key.split("/")[:2]) for key in self.etcd.keys("dlrun/")}
        self.assertEqual(len(prefixes), 2, prefixes)
        self.assertTrue(all(one.startswith(f"dlrun/{NAME}-") for one in prefixes), prefixes)
        self.assertEqual(report["recoveries"], [])


class cannot_begin(with_an_etcd):
    def expect_refused(self, code, *words):
        """And tried again, since nobody knows whether the run has begun: the Job is not over."""
        self.cluster.apply(self.manifests(self.spec()))
        [self.control] = self.cluster.start(NAME)
        wait_until(lambda: len(self.control.exit_codes) > 1, "it is tried again")
        self.assertEqual(self.control.exit_codes[0], code, self.control.said())
        for word in words:
            self.assertIn(word, self.control.said())
        self.assertIsNone(self.cluster.condition(NAME))
        wait_until(lambda: "dlrun/exit-code" in self.cluster.objects["Job", NAME]["metadata"].get("annotations", {}), "the Job is told")
        self.assertEqual(self.made_pods(), set())

    def expect_begun(self):
        """When that is mended."""
        wait_until(lambda: len(self.pods_of_hosts()) == HOSTS, "the pods of hosts are there")
        self.pauses.end()
        self.expect_end(self.spec())

    def test_without_a_key_that_the_job_names_until_the_secret_has_it(self):
        self.keep_files({name: text for name, text in self.files.items() if name != "tls.key"})
        self.expect_refused(BAD_INPUT, f"the client's key for etcd, '{MOUNTED}/tls.key', cannot be read")
        folder = self.control.volume("journal")
        (folder / "tls.key").write_text(self.files["tls.key"])
        os.chown(folder / "tls.key", 0, self.control.spec["securityContext"]["fsGroup"])
        (folder / "tls.key").chmod(0o440)
        self.expect_begun()

    def test_where_no_etcd_answers_until_one_does(self):
        self.hosts.set_link(self.etcd_host, "down")
        self.expect_refused(FAILED, "no etcd answers")
        self.hosts.set_link(self.etcd_host, "up")
        self.expect_begun()


class says_what_it_is(with_an_etcd):
    def test_and_no_pod_but_the_control_pod_has_what_opens_the_etcd(self):
        text = self.manifests(self.spec())
        for secret in self.files.values():
            self.assertNotIn(secret.splitlines()[1], text)
        self.start(self.spec())
        self.wait_until_trains()
        self.assertTrue((self.control.volume("journal") / "tls.key").exists())
        for one in self.hosts_pods:
            self.assertEqual({volume["name"] for volume in one.spec["volumes"]}, {"key", "run"})
        placed = [event["host"] for event in self.events("role-placed") if event["role"] == "coordinator"]
        self.assertEqual(set(placed), {"control"})
        self.expect_fits_kubernetes(read_manifests(text).values())


if __name__ == "__main__":
    main()
