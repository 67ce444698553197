"""A job whose journal is in an etcd: the same bits, whatever ends of the job or of the etcd; and what is refused at the start."""

import contextlib
import ctypes
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import unittest

import any_kills
import small_data
from bench_case import bench_case, main
from dlrun_job import all_run, free_port, running_job
from etcd_members import etcd_members, no_etcd, own_addresses, own_authority

BAD_USAGE = 2


def file_of_library(name):
    ctypes.CDLL(name)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if f"/{name}" in line)


class with_etcd(bench_case):
    members = 1

    def setUp(self):
        super().setUp()
        etcd = etcd_members(self.bench.folder / "etcd", own_addresses(self.members), authority=self.make_authority())
        self.etcd = self.enter_or_skip(etcd, no_etcd)

    def make_authority(self):
        """Of those who talk to the etcd; None: anybody may."""
        return None

    def expect_refused(self, spec, *words, within=()):
        run_dir = self.bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), spec)
        arguments = ["train", str(file), "--run-dir", str(run_dir)]
        with running_job(self.program, run_dir, arguments, run_dir.with_suffix(".out"), within) as job:
            self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
            last = job.output().splitlines()[-1]
        for word in words:
            self.assertIn(word, last)
        self.assertFalse(run_dir.exists(), "nothing is made for it")

    def small_job(self, **options):
        spec = any_kills.make_spec("mlp_dropout", self.data, "every_step", epochs=any_kills.SHORT_EPOCHS)
        spec["cluster"]["journal"] = self.etcd.journal(**options)
        return spec

    def reference(self):
        return self.undisturbed(any_kills.make_spec("mlp_dropout", self.data, "off", epochs=any_kills.SHORT_EPOCHS))

    def expect_same_bits(self, job, may_redo=False):
        report = job.expect_complete(may_redo=may_redo)
        self.assertEqual(report["parameters_sha256"], self.reference()["parameters_sha256"])
        return report


class one_member(with_etcd):
    def test_coordinators_that_are_killed_find_everything_there_and_nothing_in_the_run_folder(self):
        reference = self.reference()
        kills, plan, report = any_kills.run_once(self.bench, self.small_job(prefix="jobs/one"), 3, reference, ["coordinator"], 3)
        self.assertGreaterEqual(kills, 1, plan)
        self.assertTrue(all(one["role"] == "coordinator" for one in report["recoveries"]), report["recoveries"])
        self.assertIn("jobs/one/owner", self.etcd.keys("jobs/one/"))
        self.assertIn("jobs/one/entry/outcome", self.etcd.keys("jobs/one/"))
        self.assertEqual(list(self.bench.folder.glob("*/journal")), [])

    def test_a_run_is_resumed_and_what_was_found_by_default_is_kept(self):
        with self.bench.start(self.small_job()) as job:
            job.kill_everything_at_step(self.reference()["steps"] // 3)
            job.resume()
            self.expect_same_bits(job, may_redo=True)
            prefixes = {"/".join(key.split("/")[:2]) for key in self.etcd.keys()}
            self.assertEqual(len(prefixes), 1, prefixes)
            self.assertRegex(prefixes.pop(), r"^dlrun/.*-[0-9a-f]{16}$")

    def test_a_completed_run_gets_a_report_that_was_lost_from_there(self):
        with self.bench.start(self.small_job()) as job:
            self.expect_same_bits(job)
            report = job.run_dir / "report.json"
            whole = report.read_text()
            report.unlink()
            done = subprocess.run([self.program, "resume", str(job.run_dir)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(report.read_text(), whole)

    def test_a_run_whose_etcd_is_lost_is_resumed_from_the_stores_of_its_ps_shards(self):
        with self.bench.start(self.small_job()) as job:
            job.kill_everything_at_step(self.reference()["steps"] // 2)
            self.etcd.kill(0)
            shutil.rmtree(self.etcd.folder / "m0")
            self.etcd.start(0)
            self.etcd.leader()
            job.resume()
            self.expect_same_bits(job, may_redo=True)

    def test_a_run_does_not_go_on_in_the_journal_of_another(self):
        spec = self.small_job(prefix="jobs/one")
        with self.bench.start(spec) as first:
            first.kill_everything_at_step(self.reference()["steps"] // 3)
            self.etcd.remove("jobs/one/")
            with self.bench.start(spec) as second:
                self.expect_same_bits(second)
            done = subprocess.run([self.program, "resume", str(first.run_dir)], capture_output=True, text=True)
            self.assertEqual(done.returncode, BAD_USAGE, done.stderr)
            self.assertIn("under jobs/one/ is the journal of another run", done.stderr)
            self.etcd.remove("jobs/one/")
            first.resume()
            self.expect_same_bits(first, may_redo=True)

    def test_an_etcd_that_is_away_for_a_while_stops_no_step(self):
        with self.bench.start(self.small_job()) as job:
            with job.held_from_step(20) as status:
                self.etcd.send_signal(0, signal.SIGSTOP)
            job.wait_for(lambda now: now["step"] >= status["step"] + 100, "steps go on without it")
            self.etcd.send_signal(0, signal.SIGCONT)
            report = self.expect_same_bits(job)
        self.assertTrue(all(one["role"] == "coordinator" for one in report["recoveries"]), report["recoveries"])


class older_data(with_etcd):
    """The etcd is put back, under a running job, to where it was before three more starts of a worker and one of a PS shard (R41)."""

    def restart_etcd(self, meanwhile):
        self.etcd.kill(0)
        meanwhile()
        self.etcd.start(0)
        self.etcd.leader()

    def replace(self, data, copy):
        shutil.rmtree(data)
        shutil.copytree(copy, data)

    def put_back_under_a_job(self, then=lambda job: None):
        steps, data, copy = self.reference()["steps"], self.etcd.folder / "m0", self.bench.folder / "copy"
        with self.bench.start(self.small_job(prefix="jobs/older")) as job:
            with job.held_from_step(steps // 8, all_run):
                self.restart_etcd(lambda: shutil.copytree(data, copy))
            for eighth, role in enumerate(("worker", "ps_shard", "worker", "worker"), start=2):
                with job.held_from_step(steps * eighth // 8, all_run):
                    job.kill(role)
            with job.held_from_step(steps * 6 // 8, all_run) as status:
                newest = next(one["incarnation"] for one in status["roles"] if (one["role"], one["index"]) == ("worker", 0))
                self.restart_etcd(lambda: self.replace(data, copy))
                then(job)
            self.expect_same_bits(job, may_redo=True)
            [event] = job.events("journal-older")
            self.assertEqual((event["role"], event["index"], event["incarnation"]), ("worker", 0, newest))
            self.assertIn("does not know it", event["text"])
            [loss] = job.report()["journal_losses"]
            self.assertEqual((loss["role"], loss["index"], loss["incarnation"]), ("worker", 0, newest))
            self.assertEqual(loss["known"], event["values"]["known"])
            return (job.run_dir / "logs" / "coordinator-0.log").read_text()

    def test_a_coordinator_that_lives_writes_no_more_and_the_next_one_begins_beyond_all_that_runs(self):
        """Who finds it first: the coordinator, or the data dispatcher, which ends with it."""
        self.assertRegex(self.put_back_under_a_job(),
                         r"inc=1 quit: (older data was put back into the journal jobs/older/|the journal cannot be written)")

    def test_a_coordinator_that_is_killed_is_followed_by_one_that_begins_beyond_all_that_runs(self):
        self.put_back_under_a_job(lambda job: job.kill("coordinator"))


class one_member_with_tls(with_etcd):
    def make_authority(self):
        return own_authority(self.bench.folder / "authority")

    def files(self):
        certificate, key = self.etcd.authority.issue("dlrun")
        return {"ca_file": str(self.etcd.authority.certificate), "certificate_file": str(certificate), "key_file": str(key)}

    def test_a_job_trains_with_certificates_on_both_ends(self):
        with self.bench.start(self.small_job(**self.files())) as job:
            self.expect_same_bits(job)

    def test_who_shows_none_or_trusts_nobody_is_refused(self):
        files = self.files()
        self.expect_refused(self.small_job(ca_file=files["ca_file"]), self.etcd.endpoint(0), "cluster.journal.etcd.endpoints")
        self.expect_refused(self.small_job(**{**files, "ca_file": files["certificate_file"]}), self.etcd.endpoint(0), "certificate")
        self.expect_refused(self.small_job(**{**files, "key_file": "none.key"}), "none.key", "must be a file that this user may read")


class three_members(with_etcd):
    members = 3

    def test_a_leader_that_is_killed_or_stands_still_costs_no_restart(self):
        with self.bench.start(self.small_job()) as job:
            for number, part in enumerate((0.2, 0.4, 0.6)):
                with job.held_from_step(int(self.reference()["steps"] * part)):
                    self.etcd.lose_leader(by_kill=number % 2 == 0)
            report = self.expect_same_bits(job)
        self.etcd.expect_no_restart(report)


class without_a_quorum(with_etcd):
    members = 3

    def test_a_job_is_refused_and_every_member_is_named(self):
        for member in (0, 2):
            self.etcd.kill(member)
        self.expect_refused(self.small_job(), "no etcd answers", *self.etcd.endpoints(), "see that most of its members run")


@contextlib.contextmanager
def answering(content):
    """A server that answers every request with this. Gives its address."""

    class answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class is_refused(with_etcd):
    def job_at(self, address):
        spec = self.small_job()
        spec["cluster"]["journal"]["etcd"]["endpoints"] = [address]
        return spec

    @unittest.skipIf(os.geteuid() != 0, "hiding a library takes root")
    def test_where_libcurl_is_missing(self):
        hide = f'mount --bind /dev/null {file_of_library("libcurl.so.4")} && exec "$@"'
        self.expect_refused(self.small_job(), "libcurl4", within=["unshare", "--mount", "sh", "-c", hide, "sh"])

    def test_where_no_etcd_is(self):
        nowhere = f"http://127.0.0.1:{free_port()}"
        self.expect_refused(self.job_at(nowhere), nowhere, "cluster.journal.etcd.endpoints")

    def test_one_that_is_too_old(self):
        with answering(b'{"header":{"cluster_id":"1"},"version":"3.3.27"}') as address:
            self.expect_refused(self.job_at(address), f"etcd at {address} is of version 3.3.27", "3.4.0 or later: update it")

    def test_what_is_no_etcd(self):
        with answering(b"<html>Welcome</html>") as address:
            self.expect_refused(self.job_at(address), f"{address}: what answers is no etcd", "<html>Welcome", "cluster.journal.etcd.endpoints")

    def test_another_cluster(self):
        self.expect_refused(self.small_job(cluster_id="12"), self.etcd.endpoint(0), "12")

    def test_a_prefix_with_the_journal_of_another_run(self):
        spec = self.small_job(prefix="jobs/mine")
        with self.bench.start(spec) as job:
            self.expect_same_bits(job)
        self.expect_refused(spec, "jobs/mine/", "etcdctl del --prefix")

    def test_more_roles_than_it_writes_at_once(self):
        spec = self.small_job()
        spec["cluster"]["workers"] = 200
        self.expect_refused(spec, self.etcd.endpoint(0), "--max-txn-ops")

    def test_what_the_job_file_says_of_it(self):
        for options, words in (({"endpoints": "10.0.0.1"}, ("endpoints[0]", "http://HOST:PORT")),
                               ({"prefix": "/jobs/"}, ("prefix", "/ at either end")),
                               ({"key_file": "key.pem"}, ("key_file", "certificate_file")),
                               ({"ca_file": "ca.pem"}, ("ca_file", "https://"))):
            with self.subTest(options=json.dumps(options)):
                self.expect_refused(self.small_job(**options), *words)


if __name__ == "__main__":
    main()
