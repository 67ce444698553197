"""Base of tests of a job on pods: what `dlrun manifests` prints, run by small_cluster.py beside an API server that is played."""

import json
import os
import secrets
import subprocess

import fake_api
import images
import paused_runs
import small_cluster
import small_data
from dlrun_job import wait_until
from etcd_members import own_authority
from hosts_case import SLOT_S, UNHURRIED_SLOT_S, on_several_hosts

NAME, HOSTS = "job", 2
COMPLETED, INTERRUPTED = 0, 130
GRACE_S = 20
API_PORT = 6443


class cluster_api(fake_api.fake_api):
    """The API server of a small cluster, on its last host."""

    def __init__(self, cluster, folder):
        where = cluster.hosts.names[-1]
        cluster.free_hosts.remove(where)
        self.host, self.port = cluster.hosts.address(where), str(API_PORT)
        self.authority = self.told_authority = own_authority(folder)
        self.accounts = []
        super().__init__(cluster.hosts.listener(where, API_PORT), *self.authority.issue("api", self.host), cluster.objects, cluster.on_job_changed,
                         cluster.on_pod_made, cluster.on_pod_to_end)
        cluster.api, cluster.lock = self, self.lock  # each calls the other

    def give_account(self, account, folder, group):
        """What a container of that service account has mounted."""
        folder.mkdir()
        (folder / "ca.crt").write_bytes(self.told_authority.certificate.read_bytes())
        (folder / "namespace").write_text(fake_api.NAMESPACE)
        self.accounts.append((account, folder, group))
        self.renew_tokens()

    def renew_tokens(self):
        """Those before are not taken any more."""
        with self.lock:
            self.tokens.clear()
            for account, folder, group in self.accounts:
                token, new = secrets.token_hex(16), folder / "token.new"
                self.tokens[token] = account
                new.write_text(token)
                os.chown(new, 0, group)
                new.chmod(0o640)
                new.replace(folder / "token")


class on_pods(on_several_hosts):
    host_count = 7  # the addresses of a cluster: a pod that replaces another one has its own, and so has the API server

    def setUp(self):
        super().setUp()
        shared = self.bench.folder / "shared"
        shared.mkdir()
        shared.chmod(0o755)
        self.pauses = self.enterContext(paused_runs.pauses(shared, SLOT_S))
        self.cluster = self.enterContext(small_cluster.cluster(self.hosts, self.bench.folder / "cluster", self.image(), shared))
        self.api = self.enterContext(cluster_api(self.cluster, self.bench.folder / "authority"))

    def image(self):
        try:
            return images.root_of(self.program)
        except images.no_image as why:
            return self.leave_out(why)

    def spec_of_pods(self, spec):
        """With the data where pods find it."""
        claimed = self.cluster.claim("data")
        for key in ("records", "labels"):
            (claimed / key).write_bytes((self.bench.folder / f"train-{key if key == 'labels' else 'images'}").read_bytes())
        return spec | {"data": {"train": {**self.data, "records": "/data/records", "labels": "/data/labels"}}}

    def words_for(self, verb, spec, *options):
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.spec_of_pods(spec))
        return [self.program, verb, str(file), "--image", "dlrun", "--name", NAME, "--hosts", str(HOSTS), "--cpus", "2", "--memory", "2Gi",
                "--disk", "10Gi", "--data-claim", "data", "--run-claim", "runs", *options]

    def manifests(self, spec, *options):
        done = subprocess.run(self.words_for("manifests", spec, *options), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (COMPLETED, ""))
        return done.stdout

    def start(self, spec, *options):
        """All that `kubectl apply` starts: the control pod, which makes the others."""
        self.cluster.apply(self.manifests(spec, *options))
        [self.control] = self.cluster.start(NAME)
        wait_until(lambda: len(self.cluster.pods_of(f"{NAME}-hosts")) == HOSTS, "the pods of hosts are there")
        self.hosts_pods = sorted(self.cluster.pods_of(f"{NAME}-hosts"), key=lambda one: one.name)

    def made_pods(self):
        """Names of the pods of hosts that were made through the API."""
        return {name for kind, name in self.api.created if kind == "Pod"}

    def pods_told(self):
        """Names of the pods of hosts that the API server has, gone or not."""
        return {name for kind, name in self.cluster.objects if kind == "Pod" and name.startswith(f"{NAME}-hosts-")}

    @property
    def run_dir(self):
        return self.cluster.claim("runs") / NAME

    def events(self, kind):
        """All of that kind that there are."""
        file = self.run_dir / "events.jsonl"
        found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [one for one in found if one["event"] == kind]

    def status(self):
        [control] = self.cluster.pods_of(NAME) or [None]
        if control is None:
            return {}
        code, told, _ = control.execute("/usr/local/bin/dlrun", "status", f"/var/lib/dlrun/{NAME}", "--json")
        return json.loads(told) if code == COMPLETED else {}

    def wait_until_trains(self, beyond=0):
        """On all its hosts, after that step. @returns the status"""
        def trains():
            now = self.status()
            is_whole = [host["state"] for host in now.get("hosts", [])].count("there") == HOSTS + 1
            return now if is_whole and now.get("status") == "running" and now["step"] > beyond else None

        return wait_until(trains, "it trains on all pods")

    def expect_complete(self, spec):
        """The Job comes to its end, its pods are gone, and the bits are those of one host."""
        self.pauses.end()
        wait_until(lambda: NAME in self.cluster.jobs_over, "the Job is complete")
        wait_until(lambda: not self.cluster.pods_of(f"{NAME}-hosts"), "the pods of hosts end")
        wait_until(lambda: not self.pods_told(), "the pods of hosts are deleted")
        report = json.loads((self.run_dir / "report.json").read_text())
        self.assertEqual((report["status"], report["samples_missing"], report["samples_duplicated"]), ("completed", 0, 0))
        self.assertEqual(report["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])
        return report

    def expect_ended(self, *pods, before=0):
        """With the job, after so many other ends. A pod may be asked to end before it hears that the job is over: another one
        has told that."""
        for one in pods:
            self.assertEqual(len(one.exit_codes), before + 1, one.said())
            self.assertIn(one.exit_codes[-1], (COMPLETED, INTERRUPTED), one.said())

    def unhurried_spec(self):
        """Of a job to which something happens."""
        self.pauses.set_all(UNHURRIED_SLOT_S)
        return self.small_job(orphan_grace_s=GRACE_S)
