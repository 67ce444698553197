"""The root is killed and `dlrun resume --hosts` is called: what runs on other hosts keeps running (R35)."""

import json
import os
import signal

import coordinator_losses as losses
from bench_case import main
from dlrun_job import all_run, pid_of, wait_until
from etcd_members import no_etcd
from hosts_case import explained, on_several_hosts

BAD_USAGE, INTERRUPTED = 2, 130
OF_OTHERS = ("agent", "data_dispatcher")  # the root itself, and what has no place of its own
STEP = 20
GRACE_S = 60


class root_that_is_killed(on_several_hosts):
    def kill_root(self, **cluster):
        """A job whose root, and all that ran on its host, is killed at STEP. @returns it and its specification"""
        spec = self.small_job(orphan_grace_s=GRACE_S, **cluster)
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        with job.held_from_step(STEP, all_run) as status:
            self.coordinator = pid_of(status, "coordinator")
            roles = {role["pid"] for role in status["roles"]}
            self.found = {pid for name in self.hosts.names[1:] for pid in self.roles_on(name)} & roles
            self.committed = [status["durable_step"]]
            self.agents = {self.hosts.agent_of(name) for name in self.hosts.names[1:]}
            job.root.kill()
            job.root.wait()
        wait_until(lambda: not self.hosts.processes(self.hosts.names[0]), "nothing runs on the root's host")
        return job, spec

    def resume(self, job, *options):
        job.resume(options=["--hosts", str(self.list), *options])

    def expect_explained(self, job, status):
        """Where each role is, those that kept running too."""
        told = {role: one["host"] for role, one in explained(job).items()}
        known = {(role["role"], role["index"]): role["pid"] for role in status["roles"] if role["role"] not in OF_OTHERS}
        self.assertEqual(set(told), set(known))
        for role, host in told.items():
            self.assertIn(known[role], self.hosts.processes(host), role)

class keeps_what_runs(root_that_is_killed):
    def expect_kept(self, job, spec):
        """All that ran on other hosts runs to the end of the job."""
        status = job.wait_for(lambda now: now["step"] > STEP + 5 and all_run(now), "steps are done again")
        there = {role["pid"] for role in status["roles"]}
        self.assertLessEqual(self.found, there)
        [adopted] = job.events("roles-adopted")
        self.assertEqual(adopted["values"]["roles"], len(self.found))
        self.expect_explained(job, status)
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.expect_committed_kept(report, self.committed)
        self.assertFalse((job.run_dir / "root.secrets").exists())
        return report

    def test_when_the_root_comes_back(self):
        job, spec = self.kill_root()
        self.assertEqual(os.stat(job.run_dir / "root.secrets").st_mode & 0o777, 0o600)
        for verb in ("status", "stop", "drain", "scale"):
            code, _, complaint = job.ask(verb, *{"drain": ["beta"], "scale": ["--workers", "2"]}.get(verb, []))
            self.assertEqual(code, 1, complaint)
            self.assertIn(f"'dlrun resume {job.run_dir} --hosts FILE' goes on", complaint)
        self.resume(job)
        self.expect_kept(job, spec)

    def test_when_it_comes_back_twice(self):
        job, spec = self.kill_root()
        self.resume(job)
        with job.held_from_step(2 * STEP) as status:
            self.committed.append(status["durable_step"])
            job.root.kill()
            job.root.wait()
        self.resume(job)
        wait_until(lambda: len(job.events("roles-adopted")) == 2, "they were found again")
        self.expect_committed_kept(self.expect_same_bits(job, spec, may_redo=True), self.committed)

    def test_and_what_has_ended_meanwhile_starts_again(self):
        job, spec = self.kill_root()
        victim = min(self.found)
        os.kill(victim, signal.SIGKILL)
        self.resume(job)
        wait_until(lambda: job.events("roles-adopted"), "the others were found")
        [adopted] = job.events("roles-adopted")
        self.assertEqual(adopted["values"]["roles"], len(self.found) - 1)
        self.expect_same_bits(job, spec, may_redo=True)

    def test_and_a_host_that_is_lost_meanwhile_is_left_out(self):
        job, spec = self.kill_root()
        gone = self.hosts.names[-1]
        left = {pid for name in self.hosts.names[1:-1] for pid in self.roles_on(name)}
        self.hosts.kill_all(gone)
        self.resume(job)
        wait_until(lambda: job.events("roles-adopted"), "the others were found")
        [adopted] = job.events("roles-adopted")
        self.assertEqual(adopted["values"]["roles"], len(left))
        self.expect_same_bits(job, spec, may_redo=True)


class keeps_what_runs_and_the_run(root_that_is_killed):
    def kept(self, job):
        """What the run is, and how it ended last."""
        names = ("run.record", "spec.yaml", "spec.1.yaml", "report.json")
        return {name: (job.run_dir / name).read_bytes() for name in names if (job.run_dir / name).exists()}

    def refuse_change(self, job):
        """A resume that would change the training, and does not begin: beta does not come."""
        start = ["sh", "-c", f'[ "$0" != beta ] || exit 3; exec ip netns exec {self.hosts.prefix}$0 "$@"', "{host}"]
        failing = self.hosts.write_file(self.bench.folder / "failing.yaml", {"start": start})
        code, _, complaint = job.ask("resume", "--hosts", str(failing), "--set", "train.optimizer.sgd.lr=0.01")
        self.assertEqual(code, BAD_USAGE, complaint)

    def test_when_a_change_is_refused_since_a_host_does_not_come(self):
        """What runs on that host, which the refused root did not reach, is of the same job."""
        job, spec = self.kill_root()
        kept = self.kept(job)
        there = self.found & set(self.roles_on("beta"))
        self.assertTrue(there)
        self.hosts.set_link("beta", "down")
        self.refuse_change(job)
        self.assertEqual(self.kept(job), kept)
        self.hosts.set_link("beta", "up")
        self.resume(job)
        status = job.wait_for(lambda now: now["step"] > STEP + 5 and all_run(now), "steps are done again")
        self.assertLessEqual(there, {role["pid"] for role in status["roles"]})
        self.expect_same_bits(job, spec, may_redo=True)

    def test_that_was_stopped_when_a_change_is_refused(self):
        spec = self.small_job()
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_for_step(STEP)
        self.assertEqual(job.ask("stop")[0], 0)
        self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
        kept = self.kept(job)
        self.assertIn("report.json", kept)
        self.refuse_change(job)
        self.assertEqual(self.kept(job), kept)
        self.resume(job)
        self.expect_same_bits(job, spec)


class keeps_the_coordinator(root_that_is_killed):
    host_count = losses.JOB_HOSTS

    def setUp(self):
        super().setUp()
        self.etcd = self.enter_or_skip(losses.etcd_on(self.hosts, self.bench.folder), no_etcd)

    def test_that_is_on_another_host(self):
        job, spec = self.kill_root(journal=self.etcd.journal())
        self.assertIn(self.coordinator, self.found)
        self.resume(job)
        status = job.wait_for(lambda now: now["step"] > STEP + 5 and all_run(now), "steps are done again")
        self.assertEqual(pid_of(status, "coordinator"), self.coordinator)
        self.assertLessEqual(self.found, {role["pid"] for role in status["roles"]})
        del spec["cluster"]["journal"]
        self.pauses.end()
        report = job.expect_complete(may_redo=True)
        self.assertEqual(report["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])
        self.assertLessEqual({one["role"] for one in report["recoveries"]} & {"coordinator"}, losses.may_have_ended(job, self.hosts))


class does_not_keep_it(root_that_is_killed):
    def test_when_the_job_is_another(self):
        """Roles have the specification that they were started with."""
        job, spec = self.kill_root()
        self.resume(job, "--set", "cluster.slot_timeout_s=30")
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(job.events("roles-adopted"), [])
        self.expect_committed_kept(report, self.committed)

    def test_when_the_job_was_changed_while_its_host_was_away(self):
        """By a resume without that host: the next one changes nothing any more."""
        listed = json.loads(self.list.read_text())
        listed["hosts"] = [host for host in listed["hosts"] if host["name"] != "beta"]
        others = self.bench.folder / "others.yaml"
        others.write_text(json.dumps(listed))
        job, _ = self.kill_root()
        self.hosts.set_link("beta", "down")
        before = self.found & set(self.roles_on("beta"))
        job.resume(options=["--hosts", str(others), "--set", "train.optimizer.sgd.lr=0.01"])
        job.wait_for(all_run, "it goes on without that host")
        self.assertEqual(before & set(self.roles_on("beta")), before, "they wait for a root")
        job.root.kill()
        job.root.wait()
        self.hosts.set_link("beta", "up")
        self.resume(job)
        job.wait_for(all_run, "it goes on with all hosts")
        self.assertEqual(before & set(self.roles_on("beta")), set())
        self.pauses.end()
        job.expect_complete(may_redo=True)
        self.expect_nobody_left()

    def test_when_a_second_signal_ended_it(self):
        """What runs on other hosts does not wait for another root."""
        spec = self.small_job(orphan_grace_s=GRACE_S)
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_until_all_run()
        with job.held_from_step(STEP):  # no worker can put its things in order: the end would take long
            job.root.send_signal(signal.SIGINT)
            job.wait_for(lambda status: status["status"] == "stopping", "it stops")
            job.interrupt_again()
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            last = job.output().splitlines()[-1]
            for word in ("at once", f"'dlrun resume {job.run_dir} --hosts FILE'"):
                self.assertIn(word, last)
            self.expect_nobody_left()
        self.resume(job)
        self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(job.events("roles-adopted"), [])

    def test_when_nobody_comes_within_the_grace(self):
        self.grace = 3
        spec = self.small_job(orphan_grace_s=self.grace)
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        with job.held_from_step(STEP):
            job.root.kill()
            job.root.wait()
        self.expect_nobody_left()
        self.resume(job)
        self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(job.events("roles-adopted"), [])

    def test_when_its_secrets_are_no_secret(self):
        job, spec = self.kill_root()
        secrets = job.run_dir / "root.secrets"
        secrets.chmod(0o644)
        self.resume(job)
        self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
        last = job.output().splitlines()[-1]
        for word in (str(secrets), "read by others", "remove it"):
            self.assertIn(word, last)
        secrets.chmod(0o600)
        self.resume(job)
        self.expect_same_bits(job, spec, may_redo=True)

    def test_when_its_secrets_are_torn(self):
        job, _ = self.kill_root()
        secrets = job.run_dir / "root.secrets"
        secrets.write_bytes(secrets.read_bytes()[:-1])
        self.resume(job)
        self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
        self.assertIn("is not what was written", job.output().splitlines()[-1])
        for pid in self.agents | self.found:
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
