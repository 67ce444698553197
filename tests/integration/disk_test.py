"""Disks that are full, too small, or read-only: said with path and size, nothing lost, gone on with when it is over."""

import json
import os
import signal
import subprocess
import unittest

import small_data
import small_disks
from bench_case import main
from changed_runs import BAD_USAGE, changed_runs
from dlrun_job import wait_until

EPOCHS = 24
ENDLESS = 100000
FAILED, INTERRUPTED = 1, 130
LOOKS = 20  # at a run that must stand still
WHY_NOT = small_disks.why_not()
PATIENCE_S = 60


class runs_on_disks(changed_runs):
    def reference(self):
        return self.undisturbed(self.durable_spec("off", epochs=EPOCHS))

    def expect_failure(self, job, *words):
        """Exit 1; the last line holds the words. @returns it."""
        self.assertEqual(job.wait_end(PATIENCE_S), FAILED, job.output())
        job.expect_nothing_left()
        reason = job.output().splitlines()[-1]
        for word in words:
            self.assertIn(word, reason, job.output())
        return reason


@unittest.skipIf(WHY_NOT, WHY_NOT)
class full_disk(runs_on_disks):
    def expect_pause_and_end(self, log, max_recovery):
        epochs = 2 * EPOCHS
        spec = self.durable_spec(log, epochs=epochs)
        spec["durability"]["max_recovery"] = max_recovery
        reference = self.undisturbed(self.durable_spec("off", epochs=epochs))
        with small_disks.in_memory("256m") as disk, self.bench.start(spec, parent=disk.folder) as job:
            with job.held_from_step(reference["steps"] // 8):
                disk.fill()
            # The coordinator may say it of its journal, and be first. What a dropped snapshot
            # leaves is room for the next one, so that the disk is filled again and again.
            job.wait_for_output("disk-full: ps_shard", meanwhile=disk.fill)
            line = next(line for line in job.output().splitlines() if "disk-full: ps_shard" in line)
            self.assertIn(str(job.run_dir / "ps_shard-"), line)
            self.assertRegex(line, r"\d+ bytes")
            self.assertIn("free space", line)
            disk.ballast().unlink()
            job.wait_for_output("disk-ok: ps_shard")
            report = job.expect_complete(may_redo=True)
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"], job.output())
            self.assertEqual({event["event"] for event in job.events()} & {"disk-full", "disk-ok"},
                             {"disk-full", "disk-ok"})

    def test_on_which_no_run_can_begin_keeps_nothing_of_it(self):
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.durable_spec("auto"))
        for size in ("16k", "1m"):  # for the folder, for what is measured
            with self.subTest(size), small_disks.in_memory(size) as disk:
                run_dir = disk.folder / "run"
                answer = subprocess.run([self.program, "train", file, "--run-dir", run_dir], capture_output=True, text=True,
                                        timeout=PATIENCE_S)
                self.assertNotEqual(answer.returncode, 0, answer)
                for word in (str(run_dir), "No space left on device"):
                    self.assertIn(word, answer.stderr)
                self.assertFalse(run_dir.exists())

    def test_one_without_inodes_is_told_as_such(self):
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.durable_spec("every_step"))
        with small_disks.disk("-t", "tmpfs", "-o", "size=64m,nr_inodes=4", "dlrun-test") as disk:
            run_dir = disk.folder / "run"
            answer = subprocess.run([self.program, "train", file, "--run-dir", run_dir], capture_output=True, text=True,
                                    timeout=PATIENCE_S)
            self.assertEqual(answer.returncode, FAILED, answer)
            self.assertIn("it has no inodes left", answer.stderr)
            self.assertFalse(run_dir.exists())

    def test_a_run_that_logs_each_step_pauses_and_goes_on(self):
        self.expect_pause_and_end("every_step", "500ms")

    def test_a_run_that_takes_snapshots_says_so_and_goes_on(self):
        self.expect_pause_and_end("snapshots", "20ms")

    @staticmethod
    def step_of(job):
        return job.wait_for(lambda _: True, "it answers")["step"]

    def test_nothing_moves_while_it_is_full_and_a_stop_is_obeyed(self):
        with small_disks.in_memory("256m") as disk:
            with self.bench.start(self.durable_spec("every_step", epochs=ENDLESS), parent=disk.folder) as job:
                job.wait_for_step(100)
                disk.fill()
                job.wait_for(lambda now: any(role["state"] == "disk-full" for role in now["roles"]
                                             if role["role"] == "ps_shard"), "a PS shard waits for room")
                # What was on its way to the log is still made; then nothing more, however often one
                # looks.
                wait_until(lambda: len({self.step_of(job) for _ in range(LOOKS)}) == 1, "the training stands still")
                self.assertEqual(job.ask("stop")[0], 0)
                self.assertEqual(job.wait_end(PATIENCE_S), INTERRUPTED, job.output())
                job.expect_nothing_left()
                self.expect_report_told_as_it_is(job)

    def resumed_where_nothing_fits(self, disk, job, overrides=(), options=()):
        """Begins to go on with the run on its disk without a free byte; returns when it waits for room."""
        disk.fill()
        job.output_file.write_text("")
        job.resume(overrides, options)
        job.wait_for_output("the run waits until there is room")
        self.assertIn(f"the disk is full: cannot write {job.run_dir}", job.output())
        self.assertIn("No space left on device", job.output())

    def test_a_run_that_was_killed_is_resumed_when_there_is_room(self):
        spec = self.durable_spec("every_step", epochs=EPOCHS)
        reference = self.reference()
        with small_disks.in_memory("256m") as disk, self.bench.start(spec, parent=disk.folder) as job:
            job.kill_everything_at_step(reference["steps"] // 4)
            for end in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                with self.subTest(end):
                    self.resumed_where_nothing_fits(disk, job)
                    job.root.send_signal(end)
                    self.assertEqual(job.wait_end(PATIENCE_S), INTERRUPTED, job.output())
                    job.expect_nothing_left()
            self.resumed_where_nothing_fits(disk, job, ["cluster.workers=3"])  # another record, another spec.yaml
            disk.ballast().unlink()
            report = job.expect_complete(may_redo=True)
            self.assertIn("there is room on the disk again", job.output())
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])

    def test_a_run_that_was_stopped_is_resumed_in_the_background_when_there_is_room(self):
        spec = self.durable_spec("snapshots", epochs=EPOCHS)
        reference = self.reference()
        with small_disks.in_memory("256m") as disk, self.bench.start(spec, parent=disk.folder) as job:
            with job.held_from_step(reference["steps"] // 4):  # on a busy machine it would be over before it is stopped
                self.assertEqual(job.ask("stop")[0], 0)
            self.assertEqual(job.wait_end(PATIENCE_S), INTERRUPTED, job.output())
            self.resumed_where_nothing_fits(disk, job, options=["--detach"])
            disk.ballast().unlink()
            self.assertEqual(job.root.wait(PATIENCE_S), 0, job.output())
            self.assertEqual(job.ask("attach")[0], 0)
            self.assertEqual(job.report()["parameters_sha256"], reference["parameters_sha256"])

    def expect_report_told_as_it_is(self, job):
        """There may have been room for it after all."""
        report = job.run_dir / "report.json"
        self.assertEqual(f"\nreport {report}" in job.output(), report.exists(), job.output())
        if not report.exists():
            last = job.output().splitlines()[-1]
            for word in ("there is no report", str(report), "No space left on device"):
                self.assertIn(word, last)
            self.assertIn("ended without a report", job.ask("status")[2])


class disk_quota(runs_on_disks):
    def test_a_run_that_needs_more_stops_in_order_and_goes_on_with_more(self):
        spec = self.durable_spec("every_step", epochs=EPOCHS)
        spec["durability"]["disk_quota"] = "20MB"
        reference = self.reference()
        with self.bench.start(spec) as job:
            reason = self.expect_failure(job, str(job.run_dir / "ps_shard-"), "durability.disk_quota", "dlrun resume")
            self.assertRegex(reason, r"\d+ bytes")
            self.assertEqual(job.report()["status"], "failed")
            self.assertIn("disk-full", job.output())
            job.resume(["durability.disk_quota=1GB"])
            report = job.expect_complete(may_redo=True)
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])


@unittest.skipIf(WHY_NOT, WHY_NOT)
class read_only_disk(runs_on_disks):
    def test_is_refused_at_the_start(self):
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.durable_spec("every_step"))
        with small_disks.in_memory("16m") as disk:
            disk.make_read_only()
            run_dir = disk.folder / "run"
            answer = subprocess.run([self.program, "train", file, "--run-dir", run_dir], capture_output=True, text=True,
                                    timeout=PATIENCE_S)
            self.assertEqual(answer.returncode, BAD_USAGE, answer)
            for word in (str(run_dir), "Read-only file system"):
                self.assertIn(word, answer.stderr)

    def test_is_refused_by_resume(self):
        with small_disks.in_memory("128m") as disk:
            with self.bench.start(self.durable_spec("every_step", epochs=ENDLESS), parent=disk.folder) as job:
                job.kill_everything_at_step(10)
                disk.make_read_only()
                self.expect_refused(job, (), str(job.run_dir), "Read-only file system")

    def test_one_that_becomes_so_in_mid_run_ends_the_job_which_goes_on_when_it_is_repaired(self):
        spec = self.durable_spec("every_step", epochs=EPOCHS)
        spec["durability"]["sync"] = "power"
        spec["cluster"]["restart"] = {}
        reference = self.reference()
        with small_disks.failing_disk(self.bench.folder) as disk:
            if disk.complaint:
                self.skipTest(f"no disk can be made to fail here: {disk.complaint}")
            with self.bench.start(spec, parent=disk.folder) as job:
                with job.held_from_step(reference["steps"] // 4):
                    disk.fail()
                self.expect_failure(job, str(job.run_dir), "Read-only file system")
                disk.repair()
                job.resume()
                report = job.expect_complete(may_redo=True)
                self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])


class output_that_nobody_takes(runs_on_disks):
    def run_into(self, output):
        """Trains, both streams into `output`. @returns exit code and report."""
        run_dir = self.bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), self.durable_spec("every_step"))
        code = subprocess.run([self.program, "train", file, "--run-dir", run_dir], stdin=subprocess.DEVNULL, stdout=output,
                              stderr=output, timeout=PATIENCE_S).returncode
        return code, json.loads((run_dir / "report.json").read_text())

    def test_a_full_disk_there_does_not_end_the_training(self):
        with open("/dev/full", "wb") as full:
            code, report = self.run_into(full)
        self.assertEqual((code, report["status"]), (1, "completed"), "the model is there, what was told of it is not")

    def test_a_reader_that_went_away_does_not_end_the_training(self):
        reads, writes = os.pipe()
        os.close(reads)
        try:
            code, report = self.run_into(writes)
        finally:
            os.close(writes)
        self.assertEqual((code, report["status"]), (0, "completed"))


if __name__ == "__main__":
    main()
