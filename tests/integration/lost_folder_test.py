"""The root is lost with its run folder, whose journal and record are in an etcd: `train --or-resume` goes on in another folder, and what
runs on other hosts keeps running (R40)."""

import base64
import secrets
import shutil
import subprocess

import coordinator_losses as losses
from bench_case import main
from dlrun_job import PATIENCE_S, all_run, wait_until
from etcd_members import no_etcd
from join_case import BAD_USAGE, COMPLETED, FAILED, GRACE_S, STEP, lets_hosts_join
from service_manager import serviced_job

PREFIX = "jobs/lost-folder"


class roots_in_an_etcd(lets_hosts_join):
    host_count, hosts_min = losses.JOB_HOSTS, losses.JOB_HOSTS

    def setUp(self):
        super().setUp()
        self.etcd = self.enter_or_skip(losses.etcd_on(self.hosts, self.bench.folder), no_etcd)
        self.key = self.write_key("key")
        self.write_list(hosts_min=self.hosts_min, key_file="key")

    def write_key(self, name):
        key = self.bench.folder / name
        key.write_text(secrets.token_hex(32) + "\n")
        key.chmod(0o600)
        return key

    def begin(self):
        """A job, and agents of all other hosts that joined by the key."""
        spec = self.unhurried(self.small_job(orphan_grace_s=GRACE_S, journal=self.etcd.journal(prefix=PREFIX)))
        job = self.hosts.start(self.bench, spec, self.list, kind=serviced_job)
        self.addCleanup(job.__exit__)
        for name in self.hosts.names[1:]:
            self.agent(name, options=("--key-file", str(self.key)))
        return job, spec

    def running(self, status):
        """Processes of roles on other hosts. A keeper ends where the PS shard starts whose store was in the lost folder."""
        there = {role["pid"] for role in status["roles"] if role["role"] != "keeper"}
        return {pid for name in self.hosts.names[1:] for pid in self.roles_on(name)} & there

    def lose_root(self, job, status):
        """With all that ran on its host, and its disk."""
        found = self.running(status)
        self.assertTrue(found)
        job.kill_root()
        wait_until(lambda: not self.hosts.processes(self.hosts.names[0]), "nothing runs on the root's host")
        shutil.rmtree(job.run_dir)
        return found

    def write_owner(self, text):
        """What the root of the run compares."""
        self.ask_etcd("put", key=f"{PREFIX}/root/owner", value=text)

    def remove(self, *keys):
        for key in keys:
            self.ask_etcd("deleterange", key=f"{PREFIX}/root/entry/{key}")

    def ask_etcd(self, what, **words):
        question = {name: base64.b64encode(word.encode()).decode() for name, word in words.items()}
        self.etcd.ask_leader(f"/v3/kv/{what}", question)

    def expect_same_end(self, job, spec):
        self.pauses.end()
        report = job.expect_complete(may_redo=True)
        del spec["cluster"]["journal"]
        self.assertEqual(report["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])
        return report


class goes_on(roots_in_an_etcd):
    def test_twice_without_its_folder_and_what_runs_on_other_hosts_keeps_running(self):
        job, spec = self.begin()
        found = set()
        for step in (STEP, 3 * STEP):
            with job.held_from_step(step, all_run) as status:
                self.assertLessEqual(found, self.running(status), "roles of other hosts keep their processes")
                found = self.lose_root(job, status)
            job.begin_own()
        status = job.wait_for(lambda now: now["step"] > 3 * STEP and all_run(now), "steps are done again")
        self.assertLessEqual(found, self.running(status))
        [adopted] = job.events("roles-adopted")
        self.assertGreaterEqual(adopted["values"]["roles"], len(found))
        self.expect_same_end(job, spec)
        self.assertEqual([one.wait() for one in self.agents], [COMPLETED] * len(self.agents))
        self.assertNotIn(f"{PREFIX}/root/entry/secrets", self.etcd.keys(PREFIX))

    def test_in_the_folder_that_is_there_without_waiting(self):
        job, spec = self.begin()
        with job.held_from_step(STEP, all_run):
            job.kill_root()
        job.begin_own()
        self.expect_same_end(job, spec)
        self.assertEqual(len(job.events("roles-adopted")), 1)

    def test_in_the_folder_that_is_there_when_older_data_was_put_back_into_the_etcd(self):
        job, spec = self.begin()
        found = set()
        for step in (STEP, 2 * STEP):
            with job.held_from_step(step, all_run) as status:
                self.assertLessEqual(found, self.running(status), "roles of other hosts keep their processes")
                found = self.running(status)
                job.kill_root()
            if step == 2 * STEP:  # which knows of the first root only, and not yet what hosts know it by
                self.write_owner("dlrun-journal 2 term 1 taker 9f3c0a12b4d5e6f7 write 3")
                self.remove("secrets", "record")
            job.begin_own()
        with job.held_from_step(3 * STEP, all_run) as status:
            self.assertLessEqual(found, self.running(status))
            found = self.lose_root(job, status)
        job.begin_own()
        status = job.wait_for(lambda now: now["step"] > 3 * STEP and all_run(now), "steps are done again")
        self.assertLessEqual(found, self.running(status), "what the folder had is in the etcd again")
        self.expect_same_end(job, spec)


class does_not_go_on(roots_in_an_etcd):
    def beside(self, job, *options):
        """The same command with another folder. @returns exit code and complaint"""
        words = [str(self.other) if word == str(job.run_dir) else word for word in job.own_command]
        done = subprocess.run([*job.within, self.program, *words, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        return done.returncode, done.stderr

    def setUp(self):
        super().setUp()
        self.other = self.bench.folder / "other"

    def test_beside_a_root_that_lives_and_one_that_was_followed_ends(self):
        job, spec = self.begin()
        job.wait_for_step(STEP)
        code, complaint = self.beside(job)
        self.assertEqual(code, FAILED, complaint)
        for word in ("has a root", f"process {job.root.pid}", str(job.run_dir)):
            self.assertIn(word, complaint)
        with job.held_from_step(2 * STEP, all_run) as status:
            found = self.running(status)
            self.write_owner("dlrun-journal 1 term 99 taker 9f3c0a12b4d5e6f7 write 0")
            self.assertEqual(job.wait_end(), FAILED, job.output())
            self.assertIn("another root has taken the run over, as root 99", job.output().splitlines()[-1])
        job.begin_own()
        status = job.wait_for(lambda now: now["step"] > 2 * STEP and all_run(now), "steps are done again")
        self.assertLessEqual(found, self.running(status), "what ran on other hosts was told nothing")
        self.assertIn("term 100 ", (job.run_dir / "root.number").read_text())
        self.expect_same_end(job, spec)

    def test_with_another_key_or_job(self):
        job, spec = self.begin()
        with job.held_from_step(STEP, all_run) as status:
            self.lose_root(job, status)
        self.write_key("wrong")
        self.write_list(hosts_min=self.hosts_min, key_file="wrong")
        job.begin_own()
        self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
        self.assertIn("cannot be decrypted", job.output().splitlines()[-1])
        shutil.rmtree(job.run_dir)
        code, complaint = self.beside(job, "--set", "train.seed=8")
        self.assertEqual(code, BAD_USAGE, complaint)
        self.assertIn("train.seed was", complaint)
        self.assertFalse(self.other.exists())
        self.write_list(hosts_min=self.hosts_min, key_file="key")
        job.begin_own()
        self.expect_same_end(job, spec)


if __name__ == "__main__":
    main()
