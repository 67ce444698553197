"""A job on several hosts is complete in its journal, and its root ends before the model is in the run folder (R38): the same command,
called again, brings it."""

import os
import shutil
import signal

import coordinator_losses as losses
from bench_case import main
from dlrun_job import wait_until
from end_case import BAD_USAGE, COMPLETED, FAILED, INTERRUPTED, ends_on_several_hosts
from etcd_members import no_etcd
from net_hosts import state_of

SHORT_GRACE_S = 3


class comes_together(ends_on_several_hosts):
    def test_when_the_root_was_killed_while_roles_ended(self):
        job, spec = self.begin()
        with self.ending(job) as holder:
            report = self.kill_root(job)
        self.expect_not_whole(job, holder)
        job.begin()
        self.expect_whole(job, spec, report)
        [collected] = job.events("stores-collected")
        self.assertIn(f"ps_shard 1 from host {holder}", collected["text"])

    def test_when_the_root_was_killed_twice_while_it_brought_them(self):
        job, spec = self.begin()
        with self.collecting(job) as holder:
            report = self.kill_root(job)
            self.expect_not_whole(job, holder)
            job.begin()
            wait_until(lambda: (job.run_dir / "ps_shard-1.part").exists() or "stores-awaited" in job.output() or
                       self.is_there_again(job, holder), "the next root has its host")
            self.kill_root(job)
        job.begin()
        self.expect_whole(job, spec, report)

    def is_there_again(self, job, holder):
        """To the root that runs now."""
        status = job.try_status() or {}
        return {host["name"]: host["state"] for host in status.get("hosts", [])}.get(holder) == "there"

    def test_when_the_root_was_killed_while_it_copied_logs(self):
        job, spec = self.begin()
        with self.collecting(job) as holder:
            [other] = [name for name in self.hosts.names[1:] if name != holder]
            self.hold_back(other, "ip protocol tcp")
            wait_until(lambda: job.events("stores-collected"), "the model is here", poll_s=0.01)
            job.root.kill()
            job.root.wait()
        report = (job.run_dir / "report.json").read_bytes()
        copied = job.run_dir / "logs" / "hosts" / other
        self.assertEqual(list(copied.glob("worker*")), [])
        job.begin()
        self.expect_whole(job, spec, report)
        self.assertTrue(list(copied.glob("worker*")))

    def test_when_the_root_was_killed_as_its_last_act(self):
        """All is here, and nobody is there that waits for it."""
        job, spec = self.begin()
        secrets = self.bench.folder / "secrets"
        with self.ending(job):
            shutil.copy2(job.run_dir / "root.secrets", secrets)
        self.assertEqual(job.wait_end(), COMPLETED, job.output())
        report = (job.run_dir / "report.json").read_bytes()
        shutil.copy2(secrets, job.run_dir / "root.secrets")
        job.begin()
        self.expect_whole(job, spec, report)

    def test_when_nobody_waited_any_more_on_the_hosts(self):
        job, spec = self.begin(self.small_job(orphan_grace_s=SHORT_GRACE_S))
        with self.collecting(job):
            report = self.kill_root(job)
        self.expect_nobody_left()
        job.begin_own()
        self.expect_whole(job, spec, report)

    def test_by_resume_which_wants_to_know_the_hosts(self):
        job, spec = self.begin()
        with self.ending(job) as holder:
            report = self.kill_root(job)
        code, _, complaint = job.ask("resume")
        self.assertEqual(code, BAD_USAGE, complaint)
        self.expect_told(complaint.splitlines()[-1], holder)
        job.resume(options=["--hosts", str(self.list), "--json"])
        self.assertEqual(job.wait_end(), COMPLETED, job.output())
        self.assertIn('"type":"report"', job.output().splitlines()[-1])
        job.begin_own()
        self.expect_whole(job, spec, report)

    def test_when_the_store_could_not_be_brought_the_first_time(self):
        job, spec = self.begin()
        with self.collecting(job) as holder:
            self.assertEqual(job.wait_end(), FAILED, job.output())
            self.expect_told(job.output().splitlines()[-1], holder)
            self.assertIn("does not answer", job.events("store-stays")[0]["text"])
            self.expect_not_whole(job, holder)
            report = (job.run_dir / "report.json").read_bytes()
        job.begin()
        self.expect_whole(job, spec, report)

    def test_when_nobody_could_tell_at_the_end_whether_it_is_whole(self):
        job, spec = self.begin()
        record = job.run_dir / "run.record"
        with self.ending(job):
            kept = record.read_bytes()
            record.write_text("cut o")
        self.assertEqual(job.wait_end(), FAILED, job.output())
        last = job.output().splitlines()[-1]
        for word in ("trained to its end", "nobody can tell", str(record), "dlrun resume"):
            self.assertIn(word, last)
        self.assertTrue((job.run_dir / "root.secrets").exists(), "its hosts wait for the next root")
        report = (job.run_dir / "report.json").read_bytes()
        record.write_bytes(kept)
        job.begin()
        self.expect_whole(job, spec, report)

    def asked_to_leave(self, job):
        """Its holder, while the job ends."""
        def leave(holder):
            os.kill(self.agent_of_holder, signal.SIGTERM)
            job.wait_for(lambda now: state_of(now, holder) == "leaving", "the root knows", poll_s=0.01)

        return leave

    def test_also_from_a_host_that_was_leaving_when_the_root_was_killed(self):
        job, spec = self.begin()
        with self.ending(job, self.asked_to_leave(job)):
            report = self.kill_root(job)
        job.begin()
        self.expect_whole(job, spec, report)

    def test_and_a_host_that_is_to_leave_meanwhile_stays_until_its_store_is_here(self):
        job, spec = self.begin()
        with self.ending(job, self.asked_to_leave(job)):
            pass
        self.assertEqual(job.wait_end(), COMPLETED, job.output())
        self.assertEqual(job.events("host-left"), [])
        self.expect_whole(job, spec, (job.run_dir / "report.json").read_bytes())


class loses_hosts(ends_on_several_hosts):
    def lose(self, job, how):
        """The root is killed, and then `how(holder)` happens. @returns the holder, and the report"""
        with self.collecting(job) as holder:
            report = self.kill_root(job)
            self.hosts.kill_all(*self.hosts.names[1:])
            how(holder)
        return holder, report


class says_what_is_missing(loses_hosts):
    def kept(self, name):
        return self.hosts.folder_of(name).with_name(f"kept-{name}")

    def put_away(self, holder):
        self.hosts.folder_of(holder).rename(self.kept(holder))
        self.hosts.folder_of(holder).mkdir()

    def expect_failure(self, job, holder):
        job.begin()
        self.assertEqual(job.wait_end(), FAILED, job.output())
        self.expect_told(job.output().splitlines()[-1], holder)
        self.expect_not_whole(job, holder)

    def test_when_a_host_has_lost_its_folder_and_goes_on_when_that_is_back(self):
        job, spec = self.begin()
        holder, report = self.lose(job, self.put_away)
        self.expect_failure(job, holder)
        self.expect_nobody_left()
        shutil.rmtree(self.hosts.folder_of(holder))
        self.kept(holder).rename(self.hosts.folder_of(holder))
        job.begin()
        self.expect_whole(job, spec, report)

    def test_when_it_has_an_older_store(self):
        """That of a PS shard which had moved, or was put back from somewhere: it leads to no last version."""
        job, spec = self.begin()
        with job.held_from_step(20):
            [store] = self.hosts.folder.glob("*/run/ps_shard-1")
            shutil.copytree(store, self.bench.folder / "older")
        holder, report = self.lose(job, lambda name: None)
        shutil.move(store, self.bench.folder / "newest")
        shutil.copytree(self.bench.folder / "older", store)
        self.expect_failure(job, holder)
        self.expect_nobody_left()
        shutil.rmtree(store)
        shutil.move(self.bench.folder / "newest", store)
        job.begin()
        self.expect_whole(job, spec, report)

    def test_when_no_host_comes_and_goes_on_with_a_store_that_was_copied_by_hand(self):
        job, spec = self.begin()
        holder, report = self.lose(job, lambda name: None)
        self.list = self.hosts.write_file(self.list, {"start": ["sh", "-c", "echo no route; exit 7"]})
        self.expect_failure(job, holder)
        [store] = self.hosts.folder.glob("*/run/ps_shard-1")
        shutil.copytree(store, job.run_dir / store.name)
        job.begin()
        self.expect_whole(job, spec, report)

    def test_until_somebody_stops_it(self):
        job, spec = self.begin()
        with self.collecting(job) as holder:
            report = self.kill_root(job)
            job.begin()
            wait_until(lambda: (job.try_status() or {}).get("status") == "stopping", "the next root is there")
            job.root.send_signal(signal.SIGINT)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            self.expect_told(job.output().splitlines()[-1], holder)
        job.begin()
        self.expect_whole(job, spec, report)


class has_copies(loses_hosts):
    log = "every_step"

    def test_of_which_one_serves_when_the_host_of_the_store_is_gone(self):
        spec = self.small_job(orphan_grace_s=60)
        spec["durability"] = {"log": self.log}
        job, spec = self.begin(spec)
        _, report = self.lose(job, lambda name: shutil.rmtree(self.hosts.folder_of(name) / "run"))
        job.begin()
        self.expect_whole(job, spec, report)


class has_copies_of_snapshots(has_copies):
    log = "snapshots"


class has_its_journal_in_an_etcd(ends_on_several_hosts):
    host_count = losses.JOB_HOSTS

    def expect_nobody_left(self):
        """But the etcd."""
        for name in self.hosts.names:
            wait_until(lambda one=name: not list(self.hosts.agents_of(one)), f"no agent runs on {name}")

    def test_and_a_coordinator_on_another_host_that_runs_still(self):
        etcd = self.enter_or_skip(losses.etcd_on(self.hosts, self.bench.folder), no_etcd)
        job, spec = self.begin(self.small_job(orphan_grace_s=60, journal=etcd.journal()))
        with self.ending(job) as holder:
            report = self.kill_root(job)
            coordinator = self.places["coordinator", 0]
        self.assertNotEqual(coordinator, self.hosts.names[0])
        self.expect_not_whole(job, holder)
        job.begin()
        del spec["cluster"]["journal"]
        self.expect_whole(job, spec, report)


if __name__ == "__main__":
    main()
