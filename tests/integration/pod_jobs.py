"""A job on pods: what `dlrun manifests` prints, run by small_cluster.py beside an API server that is played."""

import json
import os
import pathlib
import secrets
import subprocess

import doors
import fake_api
import small_data
from dlrun_job import status_of
from etcd_members import own_authority
from told_events import read_events
from waiting import expect, expectation_failed, wait_until

NAME, HOSTS = "job", 2
COMPLETED, INTERRUPTED = 0, 130
API_PORT = 6443


class players_of(fake_api.players):
    """A small cluster."""

    def __init__(self, cluster):
        self.cluster = cluster

    def on_job(self, space, name):
        self.cluster.on_job_changed(name)

    def on_pod(self, space, made):
        self.cluster.on_pod_made(made)

    def on_end(self, space, going):
        return self.cluster.on_pod_to_end(going)


class cluster_api(fake_api.fake_api):
    """The API server of a small cluster, on its last host."""

    def __init__(self, cluster, folder, played_by=None):
        self.cluster, self.where = cluster, cluster.hosts.names[-1]
        cluster.free_hosts.remove(self.where)
        self.host, self.port = cluster.hosts.address(self.where), str(API_PORT)
        self.authority = self.told_authority = own_authority(folder)
        self.accounts = []
        super().__init__(cluster.hosts.listener(self.where, API_PORT), *self.authority.issue("api", self.host), cluster.objects,
                         played_by or players_of(cluster))
        cluster.api, cluster.lock = self, self.lock  # each calls the other

    def __enter__(self):
        self.controllers.__enter__()
        return super().__enter__()

    def __exit__(self, *_):
        self.controllers.__exit__()
        super().__exit__()

    def come_back(self):
        """After stop(), at the same address."""
        self.begin_again(self.cluster.hosts.listener(self.where, API_PORT))

    def answer_in(self, space, kind, name, verb, query, headers, body):
        if verb == "watch":  # as dlrun asks
            assert kind == "Pod" and query["allowWatchBookmarks"] == "true" and 240 <= int(query["timeoutSeconds"]) <= 300, query
        return super().answer_in(space, kind, name, verb, query, headers, body)

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
                self.tokens[token] = fake_api.NAMESPACE, account
                new.write_text(token)
                os.chown(new, 0, group)
                new.chmod(0o640)
                new.replace(folder / "token")


class job_on_pods:
    """Base of whoever has `bench`, `data` (of small_data), `program`, `cluster`, `api` and `pauses`."""

    pod_hosts = HOSTS  # beside the control pod
    ps_hosts = 0  # beside those
    claims = ("--run-claim", "runs")  # without: the run folder goes with the control pod
    memory = "2Gi"  # of each pod

    def spec_of_pods(self, spec):
        """With the data where pods find it."""
        claimed = self.cluster.claim("data")
        for key in ("records", "labels"):
            (claimed / key).write_bytes((self.bench.folder / f"train-{key if key == 'labels' else 'images'}").read_bytes())
        return spec | {"data": {"train": {**self.data, "records": "/data/records", "labels": "/data/labels"}}}

    def words_for(self, verb, spec, *options):
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.spec_of_pods(spec))
        return [self.program, verb, str(file), "--image", "dlrun", "--name", NAME, "--hosts", str(self.pod_hosts), "--cpus", "2", "--memory",
                self.memory, "--disk", "10Gi", "--data-claim", "data", *self.claims,
                *(("--ps-hosts", str(self.ps_hosts), "--ps-memory", self.memory) if self.ps_hosts else ()), *options]

    def manifests(self, spec, *options, said=""):
        done = subprocess.run(self.words_for("manifests", spec, *options), capture_output=True, text=True)
        expect((done.returncode, done.stderr) == (COMPLETED, said), f"dlrun manifests: {done.returncode}, {done.stderr}")
        return done.stdout

    def start(self, spec, *options):
        """All that `kubectl apply` starts: the control pod, which makes the others."""
        self.cluster.apply(self.manifests(spec, *options))
        [self.control] = self.cluster.start(NAME)
        wait_until(lambda: len(self.pods_of_hosts()) == self.pod_hosts + self.ps_hosts, "the pods of hosts are there")
        self.hosts_pods = self.pods_of_hosts()

    def suspend(self, wanted=True):
        """As `kubectl patch`; False: it is released."""
        self.cluster.objects["Job", NAME]["spec"]["suspend"] = wanted
        self.cluster.on_job_changed(NAME)

    def annotations(self):
        """Of the Job."""
        return self.cluster.objects.get(("Job", NAME), {"metadata": {}})["metadata"].get("annotations", {})

    def pods_of_hosts(self):
        """Those that run, or are to, in order of their names."""
        return sorted(self.cluster.pods_of(f"{NAME}-hosts"), key=lambda one: one.name)

    def control_pod(self):
        """Of two the one that leads. None: there is none."""
        leader = self.annotations().get("dlrun/leader")
        return next((one for one in self.cluster.pods_of(NAME) if leader in (None, one.name)), None)

    def made_pods(self):
        """Names of the pods of hosts that were made through the API."""
        return {name for kind, name in self.api.created if kind == "Pod"}

    def pods_told(self):
        """Names of the pods of hosts that the API server has, gone or not."""
        return {name for kind, name in list(self.cluster.objects) if kind == "Pod" and name.startswith((f"{NAME}-hosts-", f"{NAME}-ps-"))}

    @property
    def run_dir(self):
        if "--run-claim" in self.claims:
            return self.cluster.claim("runs") / NAME
        leader = self.annotations().get("dlrun/leader")
        return [one for one in self.cluster.pods if one.group == NAME and leader in (None, one.name)][-1].volume("run") / NAME

    def events(self, kind=None):
        return read_events(self.run_dir, kind)

    def status(self):
        control = self.control_pod()
        if control is None:
            return {}
        if told := self.told_by_root(control):
            return told
        code, told, _ = control.execute("/usr/local/bin/dlrun", "status", f"/var/lib/dlrun/{NAME}", "--json")
        return json.loads(told) if code == COMPLETED else {}

    def told_by_root(self, control):
        """The same, asked of a root that answers, without that command: on a busy machine it takes as long to start as some states
        last. {} when nobody answers."""
        told = doors.said_as(control.spec["securityContext"]["runAsUser"], lambda: status_of(pathlib.Path()), self.run_dir)
        return json.loads(told) if told.startswith("{") else {}

    def wait_until_trains(self, beyond=0):
        """On all its hosts, after that step. @returns the status"""
        def trains():
            now = self.status()
            is_whole = [host["state"] for host in now.get("hosts", [])].count("there") == self.pod_hosts + self.ps_hosts + 1
            return now if is_whole and now.get("status") == "running" and now["step"] > beyond else None

        try:
            return wait_until(trains, "it trains on all pods")
        except expectation_failed as why:
            raise expectation_failed("\n".join((f"{why}; {self.status()}", *(f"{one.name}, ended with {one.exit_codes}:\n{one.said()}"
                                                                           for one in self.cluster.pods)))) from why

    def wait_for_end(self, reference, patience_s=180):
        """The Job comes to its end, its pods are gone, and the bits are those of the report of one host. @returns its report"""
        self.pauses.end()
        wait_until(lambda: NAME in self.cluster.jobs_over, "the Job is complete", patience_s)
        wait_until(lambda: not self.pods_of_hosts(), "the pods of hosts end")
        wait_until(lambda: not self.pods_told(), "the pods of hosts are deleted")
        report = json.loads((self.run_dir / "report.json").read_text())
        told = (report["status"], report["samples_missing"], report["samples_duplicated"])
        expect(told == ("completed", 0, 0), f"status and samples missing and duplicated are {told}")
        for name in ("parameters_sha256", "samples_committed"):
            expect(report[name] == reference[name], f"{name} {report[name]}, undisturbed {reference[name]}")
        return report
