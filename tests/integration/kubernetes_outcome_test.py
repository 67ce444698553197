"""How a job on pods has ended, as Kubernetes is told: by a control pod of small_cluster.py, an API server that is played, and Roles."""

import json
import struct
import time

import poison_runs
from bench_case import main
from dlrun_job import wait_until
from etcd_members import own_authority
from pods_case import COMPLETED, HOSTS, NAME, on_pods

FAILED, BAD_INPUT, LEFT_OUT = 1, 2, 3
RECORDS = 200
LONG_EPOCHS = 1_000_000  # of a job that does not come to its end
HUGE = 3e38  # nearly the largest float


class ending(on_pods):
    """For a dlrun with the layer of poison_program.cpp."""

    is_wild = False  # its first record makes it diverge

    def spec_of_pods(self, spec):
        claimed = self.cluster.claim("data")
        data = poison_runs.write_data(claimed, RECORDS, self.mines)
        if self.is_wild:
            values = bytearray((claimed / "records.npy").read_bytes())
            struct.pack_into(f"<{poison_runs.WIDTH}f", values, len(values) - 4 * poison_runs.WIDTH * RECORDS, *[HUGE] * poison_runs.WIDTH)
            (claimed / "records.npy").write_bytes(values)
        return spec | {"data": {"train": data | {"records": "/data/records.npy", "labels": "/data/labels.npy"}}}

    def run_job(self, mines=(), **options):
        self.mines = dict(mines)
        self.start(poison_runs.make_spec({}, workers=2, **options))
        self.job = self.cluster.objects["Job", NAME]

    def annotations(self):
        return {key.removeprefix("dlrun/"): value for key, value in self.job["metadata"].get("annotations", {}).items()}

    def expect_told(self, code, *words, condition):
        """To the Job, by an Event and in the last words, once the Job has come to that end."""
        wait_until(lambda: self.cluster.condition(NAME), "the Job is over")
        self.assertEqual(self.cluster.condition(NAME), condition, self.control.said())
        self.assertEqual(self.control.exit_codes[0], code, self.control.said())
        told = self.annotations()
        self.assertEqual(told["exit-code"], str(code))
        event = self.api.events[0]
        self.assertEqual((event["involvedObject"]["kind"], event["involvedObject"]["name"], event["involvedObject"]["uid"]),
                         ("Job", NAME, self.job["metadata"]["uid"]))
        self.assertEqual(event["type"], "Normal" if code == COMPLETED else "Warning")
        last_words = self.control.termination_log.read_text()
        for word in words:
            for text in (told["reason"] + told["summary"], event["message"], last_words):
                self.assertIn(word, text)
        wait_until(lambda: not self.cluster.pods_of(NAME) and not self.cluster.pods_of(f"{NAME}-hosts"), "no pod is left")
        return told


class ends(ending):
    def test_with_records_left_out_which_is_a_failure_at_once(self):
        self.run_job({100: "abort", 111: "abort"})
        told = self.expect_told(LEFT_OUT, "2 records were left out", "completed: ", condition="Failed")
        self.assertEqual(self.job["spec"]["backoffLimit"], 0)
        self.assertLessEqual(len(self.control.exit_codes), 2)
        self.assertIn(json.loads((self.run_dir / "report.json").read_text())["parameters_sha256"], told["summary"])

    def test_with_a_job_that_has_failed(self):
        self.is_wild = True
        self.run_job(epochs=3)
        report = wait_until(lambda: (self.run_dir / "report.json").exists() and self.control.exit_codes and
                            json.loads((self.run_dir / "report.json").read_text()), "it fails")
        self.assertEqual(report["status"], "failed")
        self.expect_told(FAILED, report["reason"][:100], condition="Failed")

    def test_with_wrong_data_and_no_pod_is_made_for_that(self):
        self.mines = {}
        manifests = self.manifests(poison_runs.make_spec({}, workers=2))
        (self.cluster.claim("data") / "labels.npy").unlink()
        self.cluster.apply(manifests)
        self.job = self.cluster.objects["Job", NAME]
        [self.control] = self.cluster.start(NAME)
        self.expect_told(BAD_INPUT, "labels.npy", condition="Failed")
        self.assertEqual(self.made_pods(), set())

    def test_completed_and_hosts_end_by_themselves(self):
        self.run_job()
        self.expect_told(COMPLETED, "completed: ", condition="Complete")
        self.assertEqual(self.job["spec"]["backoffLimit"], 2**31 - 1)
        wait_until(lambda: not self.pods_told(), "the pods of hosts are deleted")
        for one in self.hosts_pods:
            self.assertEqual(one.exit_codes, [COMPLETED], one.said())
        self.assertEqual(self.api.events[0]["reason"], "TrainingCompleted")

    def test_before_any_pod_of_a_host_was_there_and_none_waits_for_ever(self):
        self.mines = {}
        self.cluster.apply(self.manifests(poison_runs.make_spec({}, workers=2), "--hosts-min", "1"))
        self.job = self.cluster.objects["Job", NAME]
        [self.control] = self.cluster.start(NAME)
        self.expect_told(COMPLETED, "completed: ", condition="Complete")
        wait_until(lambda: not self.pods_told(), "the pods of hosts are deleted, if there are any")


class ends_for_its_pods(ending):
    def test_before_it_begins_where_the_role_lets_it_make_none(self):
        self.mines = {}
        self.cluster.apply(self.manifests(poison_runs.make_spec({}, workers=2)))
        rules = self.cluster.objects["Role", NAME]["rules"]
        next(one for one in rules if "pods" in one["resources"])["verbs"].remove("create")
        self.job = self.cluster.objects["Job", NAME]
        [self.control] = self.cluster.start(NAME)
        wait_until(lambda: "held_up_by" in self.status(), "it says what holds it up")
        self.assertIn("lacks the right to create pods", self.status()["held_up_by"][0])
        self.expect_told(BAD_INPUT, 'the rule {apiGroups: [""], resources: ["pods"], verbs: ["create"]}', condition="Failed")
        self.assertEqual(self.job["spec"]["backoffLimit"], 0)
        self.assertEqual(self.made_pods(), set())
        self.assertEqual(self.cluster.objects["ConfigMap", f"{NAME}-pods"]["data"]["hosts"], "0")

    def test_in_order_where_its_namespace_is_deleted(self):
        self.run_job(epochs=LONG_EPOCHS, restarts=10)
        self.wait_until_trains()
        self.api.refuse_once("create pods", 403, "pods is forbidden: unable to create new content in namespace default because it is being "
                             "terminated", "Forbidden", causes=["NamespaceTerminating"])
        self.hosts_pods[0].delete()
        self.expect_told(FAILED, "unable to create new content in namespace default", "interrupted: ", condition="Failed")
        self.assertEqual(len(self.made_pods()), HOSTS)

    def test_in_order_where_a_pod_needs_more_memory_than_it_may_have(self):
        self.run_job(epochs=LONG_EPOCHS, restarts=10)
        self.use_up_memory_twice(self.hosts_pods[0])
        self.expect_told(FAILED, "out of memory twice, with 2048Mi", "without --memory-max no pod gets more", condition="Failed")
        self.assertEqual(self.made_for(self.hosts_pods[0].host_name), {self.hosts_pods[0].name})


class tells_in_spite_of(ending):
    def test_a_token_that_was_replaced_and_a_server_that_is_busy(self):
        self.api.refuse_once(f"patch jobs/{NAME}$", 429, "too many requests", headers={"Retry-After": "1"})
        self.api.refuse_once("create events", 503, "apiserver is shutting down")
        self.run_job({100: "abort"})
        self.api.renew_tokens()
        self.api.refuse_once("list pods", 401, "Unauthorized")
        self.expect_told(LEFT_OUT, "1 record was left out", condition="Failed")
        self.assertEqual(self.control.said().count("warning: Kubernetes"), 0, self.control.said())

    def test_rights_that_are_missing_which_are_named_and_change_no_exit_code(self):
        self.mines = {100: "abort"}
        self.cluster.apply(self.manifests(poison_runs.make_spec({}, workers=2)))
        self.cluster.objects["Role", NAME]["rules"][0]["verbs"] = ["get"]
        [self.control] = self.cluster.start(NAME)
        wait_until(lambda: self.control.exit_codes, "it ends")
        self.assertEqual(self.control.exit_codes[0], LEFT_OUT)
        self.assertIn(f"lacks the right to patch jobs.batch '{NAME}'", self.control.said())
        self.assertIsNone(self.cluster.condition(NAME))
        self.assertEqual(self.api.events, [])
        wait_until(lambda: len(self.control.exit_codes) > 1, "it is started again, as Kubernetes does")

    def test_an_api_server_that_is_away_for_a_bounded_time(self):
        self.run_job()
        self.api.stop()
        began = wait_until(lambda: (self.run_dir / "report.json").exists() and time.monotonic(), "it is trained")
        wait_until(lambda: self.control.exit_codes, "it ends")
        self.assertEqual(self.control.exit_codes, [COMPLETED], self.control.said())
        self.assertLess(time.monotonic() - began, 60)
        self.assertIn("warning: Kubernetes is not told all of it: cannot patch jobs.batch", self.control.said())
        self.assertIn("completed: ", self.control.termination_log.read_text())

    def test_a_server_that_nobody_of_the_cluster_has_certified(self):
        self.api.told_authority = own_authority(self.bench.folder / "stranger")
        self.mines = {}
        self.cluster.apply(self.manifests(poison_runs.make_spec({}, workers=2), "--hosts-min", "1"))
        [self.control] = self.cluster.start(NAME)
        wait_until(lambda: self.control.exit_codes, "it ends")
        self.assertEqual(self.control.exit_codes, [COMPLETED], self.control.said())
        self.assertIn("warning: Kubernetes is not told all of it", self.control.said())
        self.assertEqual((self.api.events, self.made_pods()), ([], set()))


if __name__ == "__main__":
    main()
