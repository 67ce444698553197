"""`dlrun resume --hosts`: a job of several hosts goes on with what their stores have, whatever was lost meanwhile."""

import json
import os
import shutil
import signal

from bench_case import main
from dlrun_job import wait_until
from hosts_case import explained, on_several_hosts, without_copies

BAD_USAGE, INTERRUPTED = 2, 130
STEP = 20


class resumed_with_hosts(on_several_hosts):
    def begin(self, end, log="every_step"):
        """A job of which `end` is done at STEP, and which has ended then. @returns it and its specification"""
        spec = without_copies(self.small_job())
        spec["durability"]["log"] = log
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        with job.held_from_step(STEP):
            self.store_before = self.holder_of_shard(1)
            end(job)
        job.wait_end()
        self.expect_nobody_left()
        return job, spec

    def holder_of_shard(self, shard):
        """The host that has its store."""
        [name] = [name for name in self.hosts.names[1:] if self.store_on(name, shard).exists()]
        return name

    def store_on(self, name, shard):
        return self.hosts.folder_of(name) / "run" / f"ps_shard-{shard}"

    def resume(self, job, hosts=None, options=()):
        job.resume(options=["--hosts", str(hosts or self.list), *options])

    def stop(self, job):
        job.root.send_signal(signal.SIGINT)

    def kill_everywhere(self, job):
        job.root.kill()
        self.hosts.kill_all(*self.hosts.names)


class goes_on(resumed_with_hosts):
    def expect_no_work_lost(self, end, exit_code):
        job, spec = self.begin(end)
        self.assertEqual(job.wait_end(), exit_code, job.output())
        self.resume(job)
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(self.holder_of_shard(1), self.store_before)
        self.assertEqual(job.events("store-missing"), [])
        told = explained(job)
        self.assertEqual(told["ps_shard", 1]["host"], self.store_before)
        self.assertFalse([one for one in told.values() if "moved_from" in one], "all were placed anew")
        return report

    def test_after_a_stop_with_no_step_redone(self):
        report = self.expect_no_work_lost(self.stop, INTERRUPTED)
        self.assertEqual(report["steps_redone"], 0)
        self.assertEqual(report["rewinds"], [])

    def test_after_the_root_was_killed(self):
        self.expect_no_work_lost(lambda job: job.root.kill(), -signal.SIGKILL)

    def test_after_everything_was_killed_at_once(self):
        self.expect_no_work_lost(self.kill_everywhere, -signal.SIGKILL)

    def test_after_a_stop_and_the_loss_of_its_journal(self):
        """R20: the store of PS shard 0, which is on the root's host, tells what incarnations there were."""
        job, spec = self.begin(self.stop)
        shutil.rmtree(job.run_dir / "journal")
        self.resume(job)
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(self.holder_of_shard(1), self.store_before)
        self.assertEqual(report["steps_redone"], 0)


class goes_on_without(resumed_with_hosts):
    def lose_store(self, job, spec, **how):
        """Resumes it; PS shard 1 has no store any more. The report says what that cost."""
        self.resume(job, **how)
        report = self.expect_same_bits(job, spec, may_redo=True)
        [missing] = job.events("store-missing")
        self.assertIn("ps_shard 1", missing["text"])
        self.assertGreaterEqual(report["steps_redone"], STEP)
        [rewind] = report["rewinds"]
        self.assertEqual((rewind["version"], rewind["steps_redone"]), (0, report["steps_redone"]))
        return missing

    def test_the_folder_of_a_host(self):
        job, spec = self.begin(self.stop)
        shutil.rmtree(self.hosts.folder_of(self.store_before))
        self.hosts.folder_of(self.store_before).mkdir()
        self.lose_store(job, spec)

    def test_a_host_that_the_list_has_no_more(self):
        job, spec = self.begin(self.stop)
        content = json.loads(self.list.read_text())
        content["hosts"] = [host for host in content["hosts"] if host["name"] != self.store_before]
        self.list.write_text(json.dumps(content))
        missing = self.lose_store(job, spec)
        self.assertIn(str(self.hosts.folder_of(self.store_before)), missing["text"])

    def test_the_hosts_and_says_what_that_costs(self):
        job, spec = self.begin(self.stop)
        job.resume()
        self.expect_same_bits(job, spec, may_redo=True)
        code, told, _ = job.ask("explain")
        self.assertEqual((code, told.splitlines()[0]),
                         (0, "all roles run on one host, that of 'dlrun resume': it was called without --hosts"))
        for word in (self.store_before, str(self.hosts.folder_of(self.store_before)), "--hosts FILE", "PS shard 1"):
            self.assertIn(word, job.output())
        self.assertGreaterEqual(job.report()["steps_redone"], STEP)


class finds_stores(resumed_with_hosts):
    def test_of_a_host_that_has_another_name_and_no_folder_in_the_list(self):
        job, spec = self.begin(self.stop)
        content = json.loads(self.list.read_text())
        script = f'exec ip netns exec {self.hosts.prefix}$(echo "$0" | sed s/new-//) "$@"'
        content["start"] = ["sh", "-c", script, "{host}"]
        for host in content["hosts"][1:]:
            host["name"] = f"new-{host['name']}"
            del host["folder"]
        renamed = self.bench.folder / "renamed.yaml"
        renamed.write_text(json.dumps(content))
        self.resume(job, renamed)
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(report["steps_redone"], 0)

    def test_the_newest_of_several(self):
        """One that was left on another host, at an earlier step, is not taken."""
        job, spec = self.begin(self.stop)
        other = next(name for name in self.hosts.names[1:] if name != self.store_before)
        shutil.copytree(self.store_on(self.store_before, 1), self.store_on(other, 1))
        self.resume(job)
        with job.held_from_step(2 * STEP):
            self.stop(job)
        job.wait_end()
        self.resume(job)
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(report["steps_redone"], 0)


class is_refused(resumed_with_hosts):
    def test_where_a_host_of_the_list_cannot_be_started_and_goes_on_without_it(self):
        job, spec = self.begin(self.stop)
        content = json.loads(self.list.read_text())
        kept = os.path.join(self.bench.folder, "kept.yaml")
        shutil.copy(self.list, kept)
        content["hosts"].append({"name": "omega", "address": "10.78.0.77"})
        self.list.write_text(json.dumps(content))
        before = sorted(file.name for file in job.run_dir.iterdir())
        self.resume(job)
        self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
        self.assertIn("host omega", job.output().splitlines()[-1])
        self.assertIn("out of the list", job.output().splitlines()[-1])
        self.assertLessEqual(set(before) - {"report.json"}, {file.name for file in job.run_dir.iterdir()})
        wait_until(lambda: not self.hosts.processes(self.store_before), "the others have ended")
        self.resume(job, kept)
        self.assertEqual(self.expect_same_bits(job, spec, may_redo=True)["steps_redone"], 0)

    def test_where_the_job_cannot_run_there_and_nothing_is_changed(self):
        job, spec = self.begin(self.stop)
        before = job.contents()
        elsewhere = json.loads(self.list.read_text())
        elsewhere["hosts"][1]["address"] = "127.0.0.7"
        wrong = self.bench.folder / "wrong.yaml"
        wrong.write_text(json.dumps(elsewhere))
        for options, word in ((["--set", "cluster.placement=threads", "--hosts", str(self.list)], "cluster.placement"),
                              (["--set", "durability.replicas=2"], "durability.replicas"),
                              (["--set", "cluster.workers=2", "--hosts", str(wrong)], "127.0.0.7")):
            code, told, complaint = job.ask("resume", *options)
            self.assertEqual((code, told), (BAD_USAGE, ""), complaint)
            self.assertIn(word, complaint)
            self.assertEqual(job.contents(), before, "what is refused changes nothing")
        self.resume(job)
        self.assertEqual(self.expect_same_bits(job, spec, may_redo=True)["steps_redone"], 0)

    def test_where_the_folder_of_a_host_is_of_another_run(self):
        job, _ = self.begin(self.stop)
        (self.hosts.folder_of(self.store_before) / "run" / "run.id").write_text("0123456789abcdef\n")
        self.resume(job)
        self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
        self.assertIn(f"host {self.store_before}", job.output().splitlines()[-1])
        self.assertTrue(self.store_on(self.store_before, 1).exists())


if __name__ == "__main__":
    main()
