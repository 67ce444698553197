"""`dlrun submit`, `delete`, and the verbs for k8s://NAMESPACE/JOB: what they ask of kubectl, and what they say of its answers."""

import json
import os
import pathlib
import subprocess

import small_data
from bench_case import bench_case, main
from manifests_case import host_pod
from played_kubectl import played_kubectl
from small_cluster import read_manifests

DONE, FAILED, BAD_USAGE = 0, 1, 2
IMAGE = "registry.example.com/dlrun:0.2.0"
OBJECTS = {("Secret", "x-key"), ("ConfigMap", "x-files"), ("Service", "x"), ("NetworkPolicy", "x"), ("NetworkPolicy", "x-control"),
           ("ServiceAccount", "x"), ("Role", "x"), ("RoleBinding", "x"), ("Job", "x"), ("ConfigMap", "x-pods"),
           ("PodDisruptionBudget", "x-hosts")}


def running_pod(name="x-abcde", **changes):
    return {"metadata": {"name": name}, "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]} | changes}


class with_kubectl(bench_case):
    records = 20

    def setUp(self):
        super().setUp()
        self.job = small_data.write_spec(self.bench.folder / "job.yaml", self.spec())
        self.kubectl = self.enterContext(played_kubectl(self.bench.folder / "bin"))

    def call(self, *words, **options):
        """@returns exit code, output, complaints"""
        done = subprocess.run([os.path.realpath(self.program), *words], capture_output=True, text=True,
                              **{"env": self.kubectl.environment, "cwd": self.bench.folder} | options)
        return done.returncode, done.stdout, done.stderr

    def submit(self, *options, **how):
        return self.call("submit", str(self.job), "--image", IMAGE, "--name", "x", *options, **how)

    def submitted(self, *options):
        code, told, complaint = self.submit("--run-claim", "runs", *options)
        self.assertEqual(code, DONE, complaint)
        self.kubectl.calls.clear()
        self.kubectl.pods = [running_pod()]
        return told

    def expect_refused(self, answer, *words, code=BAD_USAGE):
        self.assertEqual(answer[:2], (code, ""), answer[2])
        for word in words:
            self.assertIn(word, answer[2])
        self.assertEqual(len([line for line in answer[2].splitlines() if not line.startswith("dlrun: as the job needs")
                              and not line.startswith("dlrun: warning")]), 1, answer[2])

    def asked(self, first):
        return [words for words, _ in self.kubectl.calls if first in words]


class submits(with_kubectl):
    def test_what_manifests_writes_after_kubernetes_was_asked_whether_it_would_do(self):
        code, told, complaint = self.submit("--run-claim", "runs")
        self.assertEqual((code, told), (DONE, "submitted k8s://x\n"), complaint)
        self.assertEqual(self.kubectl.objects.keys(), OBJECTS)
        (trial, would_be), (done, is_there) = [call for call in self.kubectl.calls if "apply" in call[0]]
        self.assertEqual(set(trial) - set(done), {"--dry-run=server"})
        self.assertEqual(would_be, is_there)
        self.assertEqual(self.kubectl.calls[-1][0], done, "nothing is asked when it is there")
        code, written, _ = self.call("manifests", str(self.job), "--image", IMAGE, "--name", "x", "--run-claim", "runs")
        written = read_manifests(written)
        for one in (written, self.kubectl.objects):
            del one["Secret", "x-key"]["stringData"]["key"]
        self.assertEqual(self.kubectl.objects, written)

    def test_and_nobody_sees_the_key(self):
        _, told, complaint = self.submit()
        key = self.kubectl.objects["Secret", "x-key"]["stringData"]["key"].strip()
        self.assertRegex(key, r"\A[0-9a-f]{64}\Z")
        for text in (told, complaint, *(word for words, _ in self.kubectl.calls for word in words)):
            self.assertNotIn(key, text)
        for file in pathlib.Path(self.bench.folder).rglob("*"):
            if file.is_file():
                self.assertNotIn(key, file.read_text(errors="replace"), file)

    def test_into_the_namespace_that_is_named(self):
        code, told, complaint = self.submit("--namespace", "team-a")
        self.assertEqual((code, told), (DONE, "submitted k8s://team-a/x\n"), complaint)
        for words, _ in self.kubectl.calls:
            self.assertEqual("--namespace=team-a" in words, "version" not in words, words)
        self.assertEqual({one["metadata"]["namespace"] for one in self.kubectl.objects.values()}, {"team-a"})

    def test_from_a_pod_in_which_kubectl_needs_no_context(self):
        self.kubectl.context = ""
        code, told, complaint = self.submit()
        self.assertEqual((code, told), (DONE, "submitted k8s://x\n"), complaint)
        self.kubectl.pods = [running_pod()]
        self.assertEqual(self.call("status", "k8s://x")[0], DONE)
        self.assertEqual(self.asked("config"), [])

    def test_with_a_secret_that_is_there(self):
        self.kubectl.objects["Secret", "x-key"] = {"kind": "Secret", "metadata": {"name": "x-key"}}
        code, _, complaint = self.submit("--secret", "x-key")
        self.assertEqual(code, DONE, complaint)
        self.assertNotIn("stringData", self.kubectl.objects["Secret", "x-key"])


class does_not_submit(with_kubectl):
    def expect_nothing_there(self):
        self.assertEqual(self.kubectl.objects, {})

    def test_without_kubectl(self):
        for path in ("", str(self.bench.folder), "bin", f"{self.bench.folder}/bin/kubectl"):
            self.expect_refused(self.submit(env=os.environ | {"PATH": path}), "no kubectl on PATH", "dlrun manifests")
        self.kubectl.program.chmod(0o644)
        self.expect_refused(self.submit(env=os.environ | {"PATH": str(self.kubectl.folder)}), "no kubectl on PATH")
        self.assertEqual(self.kubectl.calls, [])

    def test_without_a_context_and_a_server(self):
        self.kubectl.context = ""
        self.kubectl.refusals["version"] = "The connection to the server localhost:8080 was refused - did you specify the right host or port?\n"
        self.expect_refused(self.submit(), "current-context is not set", "kubectl config use-context")
        self.expect_nothing_there()

    def test_to_a_server_that_is_too_old(self):
        for minor, is_enough in (("28", False), ("9+", False), ("29", True), ("29+", True)):
            self.kubectl.minor = minor
            if is_enough:
                self.assertEqual(self.submit()[0], DONE, minor)
                self.kubectl.objects.clear()
                continue
            self.expect_refused(self.submit(), "Kubernetes 1.", "1.29 or newer")
            self.expect_nothing_there()

    def test_to_an_older_one_where_control_pods_may_overlap(self):
        etcd = "--set", "cluster.journal.etcd.endpoints=https://etcd:2379"
        self.kubectl.minor = "26"
        self.expect_refused(self.submit(*etcd), "Kubernetes 1.26", "1.27 or newer")
        self.expect_nothing_there()
        self.kubectl.minor = "27"
        self.assertEqual(self.submit(*etcd)[0], DONE)
        [job] = [one for (kind, *_), one in self.kubectl.objects.items() if kind == "Job"]
        self.assertNotIn("podReplacementPolicy", job["spec"], "which that server does not know")

    def test_to_a_server_that_does_not_answer(self):
        self.kubectl.refusals["version"] = "Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout\n"
        self.expect_refused(self.submit(), "i/o timeout", code=FAILED)

    def test_what_kubernetes_refuses_and_says_so_with_its_words(self):
        says = 'Error from server (Forbidden): pods "x" is forbidden: violates PodSecurity "restricted:latest"'
        self.kubectl.refusals["trial"] = f"Warning: first\n{says}\n"
        self.expect_refused(self.submit(), f"nothing of it is there: Warning: first {says}")
        self.assertEqual(len(self.asked("apply")), 1)
        self.expect_nothing_there()

    def test_a_second_job_of_that_name(self):
        for kind, name in sorted(OBJECTS):
            self.kubectl.objects = {(kind, name): {"kind": kind, "metadata": {"name": name}}}
            self.expect_refused(self.submit(), f"/{name} already", "dlrun delete k8s://x", "--name")
            self.assertEqual(self.kubectl.objects.keys(), {(kind, name)})
        self.assertEqual(self.asked("apply"), [])

    def test_as_a_whole_what_kubernetes_takes_in_part(self):
        self.kubectl.refusals["apply"] = "Error from server: etcdserver: request timed out\n"
        self.expect_refused(self.submit("--namespace", "n"), "request timed out", "dlrun delete k8s://n/x", code=FAILED)

    def test_a_job_that_pods_cannot_run_and_asks_nobody(self):
        for options in (("--set", "cluster.placement=threads"), ("--memory", "1Mi"), ("--name", "X"), ("--namespace", "-a")):
            self.assertEqual(self.submit(*options)[0], BAD_USAGE)
        self.assertEqual(self.kubectl.calls, [])


class looks_for_what_its_options_name(with_kubectl):
    """Kubernetes takes a Job whose pods then wait for ever for what is not there."""

    KINDS = {"persistentvolumeclaim": ("--data-claim", "--run-claim", "--model-claim", "--archive-claim"), "secret": ("--secret", "--metrics-secret"),
             "serviceaccount": ("--service-account",), "priorityclass.scheduling.k8s.io": ("--priority-class", "--preemptible-priority-class"),
             "localqueue.kueue.x-k8s.io": ("--queue",)}
    OPTIONS = {option: f"our{option.strip('-')}" for options in KINDS.values() for option in options}

    def submit_all(self, *more):
        return self.submit("--namespace", "team-a", "--hosts", "2", "--hosts-min", "2", *(word for pair in self.OPTIONS.items() for word in pair), *more)

    def missing(self, *options):
        return {f"{kind}/{self.OPTIONS[one]}" for kind, of_kind in self.KINDS.items() for one in of_kind if one in options}

    def test_by_their_names_alone_and_each_kind_once(self):
        code, _, complaint = self.submit_all()
        self.assertEqual(code, DONE, complaint)
        asked = [words for words in self.asked("get") if "job.batch/x" not in words]
        self.assertEqual(len(asked), len(self.KINDS))
        for words, (kind, options) in zip(asked, self.KINDS.items(), strict=True):
            self.assertEqual({word for word in words if "/" in word}, self.missing(*options))
            self.assertLessEqual({"--output=name", "--namespace=team-a"}, {*words})
            self.assertIn(kind, words[2])

    def test_and_makes_nothing_where_one_is_missing(self):
        for kind, options in self.KINDS.items():
            for option in options:
                self.kubectl.missing = self.missing(option)
                where = "" if kind.startswith("priority") else " in namespace 'team-a'"
                self.expect_refused(self.submit_all(), f"{option} '{self.OPTIONS[option]}': there is no ", f" of that name{where}: make it, or name one",
                                    f"kubectl get {kind.partition('.')[0]}")
                self.assertEqual(self.kubectl.objects, {})
                self.assertEqual(self.asked("create"), [])

    def test_and_tells_all_that_is_missing_at_once(self):
        self.kubectl.missing = self.missing("--data-claim", "--model-claim", "--metrics-secret", "--queue")
        code, told, complaint = self.submit_all()
        self.assertEqual((code, told), (BAD_USAGE, ""))
        lines = [line.removeprefix("dlrun: ") for line in complaint.splitlines() if "there is no " in line]
        self.assertEqual([line.partition(" ")[0] for line in lines], ["--data-claim", "--model-claim", "--metrics-secret", "--queue"])

    def test_but_goes_on_where_the_user_may_not_look_or_the_server_does_not_know_the_kind(self):
        self.kubectl.refusals = {"get priorityclass.scheduling.k8s.io": 'Error from server (Forbidden): priorityclasses.scheduling.k8s.io "x" is forbidden\n',
                                 "get localqueue.kueue.x-k8s.io": 'error: the server doesn\'t have a resource type "localqueue"\n'}
        code, _, complaint = self.submit_all()
        self.assertEqual(code, DONE, complaint)
        for option, why in (("--priority-class", "(Forbidden)"), ("--preemptible-priority-class", "(Forbidden)"), ("--queue", "resource type")):
            [line] = [line for line in complaint.splitlines() if line.startswith(f"dlrun: warning: {option} '{self.OPTIONS[option]}'")]
            self.assertIn(why, line)

    def test_and_says_so_where_nobody_answers(self):
        self.kubectl.refusals = {"get secret": "Unable to connect to the server: net/http: TLS handshake timeout\n"}
        self.expect_refused(self.submit_all(), "cannot look whether what the options name is there", "TLS handshake timeout", code=FAILED)
        self.assertEqual(self.kubectl.objects, {})

    def test_for_a_secret_that_opens_an_etcd_too(self):
        self.kubectl.missing = {"secret/etcd"}
        etcd = "cluster.journal.etcd={endpoints: ['https://a:2379'], ca_file: /run/secrets/dlrun-journal/ca.crt}"
        self.expect_refused(self.submit("--journal-secret", "etcd", "--model-claim", "models", "--set", etcd), "--journal-secret 'etcd': there is no Secret")

    def test_for_nothing_where_they_name_nothing(self):
        self.assertEqual(self.submit()[0], DONE)
        self.assertEqual(len(self.asked("get")), 1)


class tries_its_pods(with_kubectl):
    """A namespace judges pods, not the Job that they are of."""

    VIOLATES = 'violates PodSecurity "restricted:latest"'

    def tried(self, *options):
        """What Kubernetes was asked whether it would make it."""
        code, _, complaint = self.submit("--run-claim", "runs", *options)
        self.assertEqual(code, DONE, complaint)
        return [json.loads(given) for words, given in self.kubectl.calls if "create" in words]

    def test_which_are_those_that_the_job_will_have(self):
        control, host = self.tried("--namespace", "team-a", "--priority-class", "high", "--memory", "4Gi", "--set", "train.epochs=3")
        template = self.kubectl.objects["Job", "x"]["spec"]["template"]
        del template["spec"]["serviceAccountName"]  # that is made with the job
        self.assertEqual(control, {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
                                   "metadata": template["metadata"] | {"generateName": "x-", "namespace": "team-a"}})
        made = host_pod(self.kubectl.objects)
        self.assertEqual(host["spec"], made["spec"] | {"hostname": "x-hosts-0"})
        self.assertEqual((host["metadata"]["generateName"], host["metadata"]["namespace"]), ("x-hosts-0-", "team-a"))
        self.assertLessEqual(made["metadata"]["labels"].items(), host["metadata"]["labels"].items())
        self.assertEqual(host["spec"]["containers"][0]["resources"]["limits"]["memory"], "4Gi")

    def test_of_each_kind(self):
        tried = self.tried("--hosts", "3", "--hosts-min", "2", "--preemptible-priority-class", "low", "--service-account", "ours")
        self.assertEqual([one["spec"].get("priorityClassName") for one in tried], [None, None, "low"])
        self.assertEqual([one["spec"].get("serviceAccountName") for one in tried], ["ours", None, None])

    def test_and_makes_nothing_where_one_is_refused(self):
        for judged, what, name in (("control", "the control pod", "x-"), ("host", "a pod of a host", "x-hosts-0-")):
            self.kubectl.judge = lambda pod, judged=judged: self.VIOLATES if pod["metadata"]["labels"]["app.kubernetes.io/component"] == judged else ""
            self.expect_refused(self.submit(), f'refuses {what}, and nothing of the job is there: Error from server (Forbidden): pods "{name}" is forbidden',
                                self.VIOLATES)
            self.assertEqual(self.kubectl.objects, {})

    def test_but_waits_for_room_that_a_quota_may_have_later(self):
        self.kubectl.judge = lambda pod: "exceeded quota: compute, requested: pods=1, used: pods=9, limited: pods=9"
        code, told, complaint = self.submit()
        self.assertEqual((code, told), (DONE, "submitted k8s://x\n"), complaint)
        self.assertEqual(complaint.count("exceeded quota: compute"), 2)
        self.assertIn("warning: there is no room now for the control pod, and it waits for some: Error from server", complaint)

    def test_and_goes_on_where_nobody_can_say(self):
        for said in ('Error from server (Forbidden): error when creating "STDIN": pods is forbidden: User "jane" cannot create resource "pods" in API '
                     'group "" in the namespace "team-a"\n',
                     'Error from server (BadRequest): error when creating "STDIN": admission webhook "a.b" does not support dry run\n'):
            self.kubectl.judge = lambda pod, said=said: said
            code, _, complaint = self.submit()
            self.assertEqual(code, DONE, complaint)
            self.assertEqual([line for line in complaint.splitlines() if "is not known before they are made" in line],
                             [f"dlrun: warning: whether Kubernetes takes the pods of the job is not known before they are made: {said.strip()}"])
            self.kubectl.objects.clear()

    def test_and_tells_each_warning_once(self):
        self.kubectl.warning = f"Warning: would {self.VIOLATES}\nWarning: other\n"
        code, _, complaint = self.submit()
        self.assertEqual(code, DONE, complaint)
        self.assertEqual([line for line in complaint.splitlines() if "Kubernetes says" in line],
                         [f"dlrun: warning: Kubernetes says: would {self.VIOLATES}", "dlrun: warning: Kubernetes says: other"])


class asks_a_control_pod(with_kubectl):
    def test_and_gives_its_output_and_its_exit_code(self):
        self.submitted("--namespace", "team-a")
        self.kubectl.executed = (3, "out\nput\n", "dlrun: warning: one\n")
        self.assertEqual(self.call("status", "k8s://team-a/x", "--json"), (3, "out\nput\n", "dlrun: warning: one\n"))
        self.assertEqual(self.kubectl.calls[-1][0], ["--namespace=team-a", "exec", "x-abcde", "--container=dlrun", "--", "/usr/local/bin/dlrun",
                                                     "status", "/var/lib/dlrun/x", "--json"])

    def test_with_all_options_of_the_verb_wherever_they_stand(self):
        self.submitted()
        for words in (("logs", "k8s://x", "--role", "worker-1", "--lines", "5"), ("events", "--json", "k8s://x"),
                      ("scale", "--workers", "3", "k8s://x", "--wait"), ("drain", "k8s://x", "x-hosts-0", "--undo"), ("explain", "k8s://x")):
            code, _, complaint = self.call(*words)
            self.assertEqual((code, complaint), (DONE, ""), words)
            ran = self.kubectl.calls[-1][0]
            self.assertEqual(ran[ran.index("--") + 2:], ["/var/lib/dlrun/x" if word == "k8s://x" else word for word in words])
            self.assertNotIn("--namespace", " ".join(ran))

    def test_whose_container_runs(self):
        self.submitted()
        self.kubectl.pods = [running_pod("x-old", phase="Failed", containerStatuses=[]), {"metadata": {"name": "x-going", "deletionTimestamp": "now"},
                             "status": running_pod()["status"]}, running_pod("x-new")]
        self.assertEqual(self.call("status", "k8s://x")[0], DONE)
        self.assertIn("x-new", self.kubectl.calls[-1][0])

    def test_of_two_the_one_that_leads(self):
        self.submitted()
        self.kubectl.pods = [running_pod("x-one"), running_pod("x-two")]
        self.expect_refused(self.call("status", "k8s://x"), "no control pod of 'x' leads", "x-one and x-two run", "try again", code=FAILED)
        self.kubectl.objects["Job", "x"]["metadata"].setdefault("annotations", {})["dlrun/leader"] = "x-two"
        self.assertEqual(self.call("logs", "k8s://x", "--follow")[0], DONE)
        self.assertIn("x-two", self.kubectl.calls[-1][0])
        self.kubectl.pods = [running_pod("x-one")]
        self.expect_refused(self.call("status", "k8s://x"), "x-one runs, x-two does not", "try again", code=FAILED)

    def test_that_does_not_run_and_says_why(self):
        self.submitted()
        waiting = [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]
        why = "0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available: 3 No preemption victims found."
        unschedulable = [{"type": "PodScheduled", "status": "False", "message": why}]
        for pods, words in (([], ("none is there",)),
                            ([running_pod(phase="Pending", containerStatuses=waiting)], ("x-abcde is Pending", "ImagePullBackOff: no such image")),
                            ([running_pod(phase="Pending", containerStatuses=[], conditions=unschedulable)], (why,))):
            self.kubectl.pods = pods
            self.expect_refused(self.call("status", "k8s://x"), "'x' does not run", "kubectl describe job/x", *words, code=FAILED)
        self.assertEqual(self.asked("exec"), [])

    def test_of_a_job_that_is_over_or_stopped(self):
        self.submitted()
        self.kubectl.pods = [running_pod(phase="Succeeded", containerStatuses=[{"state": {"terminated": {}}}])]
        job = self.kubectl.objects["Job", "x"]
        job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
        self.expect_refused(self.call("explain", "k8s://x"), "is over (Complete)", "kubectl logs job/x", code=FAILED)
        job["metadata"]["annotations"] = {"dlrun/exit-code": "3", "dlrun/reason": "2 records were left out"}
        self.expect_refused(self.call("explain", "k8s://x"), "is over (Complete): exit code 3: 2 records were left out", code=FAILED)
        job["status"], job["spec"]["suspend"], self.kubectl.pods = {}, True, []
        self.expect_refused(self.call("explain", "k8s://x"), "is suspended", '{"spec":{"suspend":false}}', code=FAILED)

    def test_but_its_status_is_what_kubernetes_was_told(self):
        self.submitted()
        self.kubectl.pods, job = [], self.kubectl.objects["Job", "x"]
        job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
        self.expect_told("x: completed", "kubectl logs job/x")
        job["metadata"]["annotations"] = {"dlrun/exit-code": "3", "dlrun/reason": "2 records were left out", "dlrun/summary": "63 steps"}
        self.expect_told("x: completed", "exit code 3: 2 records were left out", "63 steps")
        self.assertEqual(json.loads(self.call("status", "--json", "k8s://x")[1]), {
            "job": "x", "status": "completed", "outcome": "exit code 3: 2 records were left out", "summary": "63 steps", "roles": []})
        job["status"]["conditions"][0]["type"] = "Failed"
        self.expect_told("x: failed")
        job["status"], job["spec"]["suspend"] = {}, True
        job["metadata"]["annotations"] = {"dlrun/suspended": "2026-11-29T10:00:00Z", "dlrun/suspended-at-step": "17"}
        self.expect_told("x: suspended, step 17", '{"spec":{"suspend":false}}')
        self.assertEqual(json.loads(self.call("status", "k8s://x", "--json")[1])["step"], 17)

    def expect_told(self, *lines):
        code, told, complaint = self.call("status", "k8s://x")
        self.assertEqual((code, complaint), (DONE, ""))
        for line in lines:
            self.assertIn(line, told)

    def test_of_no_job(self):
        self.expect_refused(self.call("status", "k8s://x"), "no job 'x' in the namespace of kubectl's context")
        self.expect_refused(self.call("status", "k8s://team-a/x"), "no job 'x' in namespace 'team-a'")
        self.kubectl.objects["Job", "x"] = {"kind": "Job", "metadata": {"name": "x", "labels": {"app.kubernetes.io/name": "other"}}}
        self.expect_refused(self.call("logs", "k8s://x"), "not one that 'dlrun submit'")
        self.assertEqual(self.asked("exec"), [])

    def test_through_kubectl_alone(self):
        self.expect_refused(self.call("status", "k8s://x", env=os.environ | {"PATH": ""}), "no kubectl on PATH")

    def test_but_for_verbs_that_need_a_folder_here(self):
        for words in (("attach", "k8s://x"), ("export", "k8s://x"), ("resume", "k8s://x"), ("token", "k8s://x"), ("train", "k8s://x")):
            self.expect_refused(self.call(*words), f"'{words[0]}' cannot be called for a job on pods", "status, logs")
        self.assertEqual(self.kubectl.calls, [])

    def test_by_names_and_options_that_make_sense(self):
        for target in ("k8s://", "k8s://X", "k8s://a/b/c", "k8s:///x", "k8s://-a/x", "k8s://a/-x", "k8s://a/--all", "k8s://a_b/x", "k8s://a/x;id",
                       "k8s://" + "a" * 54, "k8s://a/\u00e4"):
            self.expect_refused(self.call("status", target), "names no job on pods", "k8s://NAMESPACE/JOB")
            self.expect_refused(self.call("delete", target), "names no job on pods")
        for words in (("scale", "k8s://x"), ("scale", "k8s://x", "--workers", "many"), ("status", "k8s://x", "--no-such")):
            self.assertEqual(self.call(*words)[0], BAD_USAGE)
        self.assertEqual(self.kubectl.calls, [])


class scales_pods(with_kubectl):
    def hosts(self):
        return self.kubectl.objects["ConfigMap", "x-pods"]["data"]["hosts"]

    def test_within_what_the_job_was_submitted_for(self):
        self.submitted("--hosts", "3", "--hosts-min", "3", "--hosts-max", "5")
        for words in (("--hosts", "5"), ("--hosts=2",)):
            self.assertEqual(self.call("scale", "k8s://x", *words), (DONE, f"{words[-1][-1]} pods of hosts are wanted\n", ""))
            self.assertEqual(self.hosts(), words[-1][-1])
        for wrong in ("1", "6", "0", "99999999999999999"):
            self.expect_refused(self.call("scale", "k8s://x", "--hosts", wrong), f"--hosts {wrong}", "2 to 5 pods", "--hosts-max")
        self.assertEqual(self.hosts(), "2")
        self.assertEqual(self.asked("exec"), [])

    def test_of_no_job_that_is_over_or_older(self):
        self.submitted()
        job, hosts = self.kubectl.objects["Job", "x"], self.kubectl.objects["ConfigMap", "x-pods"]
        job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
        self.expect_refused(self.call("scale", "k8s://x", "--hosts", "1"), "the job 'x' is over (Complete)")
        job["status"] = {}
        self.assertEqual(hosts["metadata"].pop("annotations"), {"dlrun/hosts-min": "1", "dlrun/hosts-max": "1"})
        self.expect_refused(self.call("scale", "k8s://x", "--hosts", "1"), "does not say how many hosts")
        del self.kubectl.objects["ConfigMap", "x-pods"]
        self.expect_refused(self.call("scale", "k8s://x", "--hosts", "1"), "does not say how many hosts")
        del self.kubectl.objects["Job", "x"]
        self.expect_refused(self.call("scale", "k8s://x", "--hosts", "1"), "no job 'x'")

    def test_and_workers_one_at_a_time_and_no_hosts_of_a_folder(self):
        self.submitted()
        for words in (("k8s://x", "--hosts", "2", "--workers", "2"), ("k8s://x", "--hosts", "2", "--wait"), ("k8s://x",)):
            self.assertEqual(self.call("scale", *words)[0], BAD_USAGE, words)
        self.expect_refused(self.call("scale", str(self.bench.folder), "--hosts", "2"), "--hosts 2", "k8s://NAMESPACE/JOB", "dlrun drain")
        self.assertEqual(self.kubectl.calls, [])


class stops(with_kubectl):
    def test_so_that_no_container_begins_again(self):
        self.submitted()
        self.assertEqual(self.call("stop", "k8s://x"), (DONE, "stopping\n", ""))
        self.assertIs(self.kubectl.objects["Job", "x"]["spec"]["suspend"], True)
        self.assertEqual(self.asked("exec"), [])
        self.expect_refused(self.call("stop", "k8s://x"), "'x' is stopped already")

    def test_no_run_that_would_be_lost(self):
        self.assertEqual(self.submit()[0], DONE)
        self.expect_refused(self.call("stop", "k8s://x"), "--run-claim", "dlrun delete k8s://x")
        self.assertNotIn("suspend", self.kubectl.objects["Job", "x"]["spec"])

    def test_nothing_that_is_over(self):
        self.submitted()
        self.kubectl.objects["Job", "x"]["status"] = {"conditions": [{"type": "Failed", "status": "True"}]}
        self.expect_refused(self.call("stop", "k8s://x"), "is over (Failed)")


class deletes(with_kubectl):
    def test_the_objects_of_the_job_and_no_others(self):
        self.submitted()
        own = {"metadata": {"labels": {"app.kubernetes.io/name": "dlrun", "app.kubernetes.io/instance": "x"}}}
        others = {("Secret", "of-somebody"): {"metadata": {}}, ("Job", "y"): {"metadata": {"labels": {"app.kubernetes.io/name": "dlrun"}}},
                  ("ConfigMap", "not-by-us"): own}
        self.kubectl.objects.update(others)
        self.kubectl.objects["Service", "x"]["metadata"]["labels"] = {}  # somebody else's by now
        code, told, complaint = self.call("delete", "k8s://x")
        self.assertEqual((code, complaint), (DONE, ""))
        self.assertEqual(self.kubectl.objects.keys(), others.keys() | {("Service", "x")})
        self.assertEqual(len(told.splitlines()), len(OBJECTS) - 1)
        self.assertNotIn("persistentvolumeclaim", str(self.kubectl.calls))

    def test_the_monitor_of_its_metrics_where_there_can_be_one(self):
        for kinds, left in (("podmonitors.monitoring.coreos.com\nprometheuses.monitoring.coreos.com\n", set()), ("", {("PodMonitor", "x")})):
            with self.subTest(kinds=kinds):
                self.submitted("--metrics-secret", "metrics", "--pod-monitor")
                self.assertTrue({("PodMonitor", "x"), ("NetworkPolicy", "x-metrics")} <= self.kubectl.objects.keys())
                self.kubectl.monitor_kinds = kinds
                self.assertEqual(self.call("delete", "k8s://x")[0], DONE)
                self.assertEqual(self.kubectl.objects.keys(), left)
        self.kubectl.objects.clear()
        self.submitted()
        self.kubectl.refusals["api-resources"] = "Error from server (Forbidden): it is forbidden\n"
        self.assertEqual(self.call("delete", "k8s://x")[0], DONE, "nobody looks where there are no metrics")
        self.submitted("--metrics-secret", "metrics")
        self.expect_refused(self.call("delete", "k8s://x"), "(Forbidden)", code=FAILED)

    def test_what_is_left_of_one(self):
        self.submitted()
        for one in OBJECTS - {("ConfigMap", "x-files")}:
            del self.kubectl.objects[one]
        self.assertEqual(self.call("delete", "k8s://x"), (DONE, "deleted configmap/x-files\n", ""))

    def test_nothing_where_there_is_none(self):
        self.expect_refused(self.call("delete", "k8s://team-a/x"), "nothing of a job 'k8s://team-a/x'", "kubectl get jobs")
        self.assertEqual(self.asked("delete"), [])

    def test_or_says_what_kubernetes_says(self):
        self.submitted()
        self.kubectl.refusals["delete"] = 'Error from server (Forbidden): jobs.batch "x" is forbidden\n'
        self.expect_refused(self.call("delete", "k8s://x"), "(Forbidden)", code=FAILED)


if __name__ == "__main__":
    main()
