"""Everything is lost but the archive (R45): the run goes on from it, to the bits of a run that nothing happened to."""

import json
import shutil
import signal
import subprocess

import small_data
import small_disks
from bench_case import main
from dlrun_job import PATIENCE_S, job_over, wait_until
from hosts_case import on_several_hosts

BAD_USAGE, FAILED = 2, 1
EPOCHS = 4  # of 63 steps
EVERY = "1s"
SAME = ("steps", "parameters_sha256", "evaluations", "best", "validation", "samples_committed", "train_loss")


class archived(on_several_hosts):
    host_count = 2

    def setUp(self):
        super().setUp()
        self.archives = self.bench.folder / "archives"

    def archived_job(self, log="every_step", **archive):
        spec = self.unhurried(self.small_job(EPOCHS, orphan_grace_s=2))
        spec["durability"] = {"log": log, "max_recovery": "50ms"} | archive
        spec["data"]["validation"] = small_data.write_images(self.bench.folder, "foreign", 301, seed=2)
        spec["train"].update({"evaluate_every": "20 steps", "keep_best": {}})
        return spec

    def begin(self, hosts=False, **options):
        spec = self.archived_job(archive={"folder": str(self.archives), "every": EVERY}, **options)
        job = self.start(spec) if hosts else self.bench.start(spec)
        self.addCleanup(job.__exit__)
        return job, spec

    def whole(self):
        """The archives that are whole, the newest last."""
        return sorted(path for path in self.archives.glob("*-*") if path.suffix != ".part") if self.archives.exists() else []

    def wait_while_it_runs(self, job, condition, what):
        def holds():
            if job.root.poll() is not None:
                raise job_over(f"the job ended before: {what}\n{job.output()}")
            return condition()

        return wait_until(holds, what)

    def wait_for_archives(self, job, count):
        """@returns what status says then"""
        self.wait_while_it_runs(job, lambda: len(job.events("archived")) >= count, f"{count} archives are made")
        return self.wait_for_later_archive(job, 0)

    def wait_for_later_archive(self, job, step):
        """@returns what status says when the newest archive is of a step after that one"""
        return job.wait_for(lambda status: ((status.get("archive") or {}).get("step") or 0) > step, f"an archive after step {step}")

    def noted_step(self):
        return max((int(file.read_text()) for file in self.archives.glob("*.step")), default=0)

    def lose_all(self, job):
        """Root, roles, hosts, and all that they had on their disks."""
        job.root.kill()
        self.hosts.kill_all(*self.hosts.names)
        job.root.wait()
        job.expect_nothing_left()
        shutil.rmtree(job.run_dir)
        for name in self.hosts.names:
            shutil.rmtree(self.hosts.folder_of(name) / "run", ignore_errors=True)

    def go_on(self, job, hosts=False):
        job.start_root(["resume", str(job.run_dir), "--from-archive", str(self.archives), *(["--hosts", str(self.list)] if hosts else [])])

    def expect_same_end(self, job, spec):
        self.pauses.end()
        report = job.expect_complete(may_redo=True)
        plain = json.loads(json.dumps(spec))
        del plain["durability"]["archive"]
        reference = self.undisturbed(plain)
        for name in SAME:
            self.assertEqual(report[name], reference[name], name)
        return report


class goes_on(archived):
    def test_on_one_host_with_every_log(self):
        for log in ("every_step", "snapshots"):
            with self.subTest(log=log):
                shutil.rmtree(self.archives, ignore_errors=True)
                job, spec = self.begin(log=log)
                known = self.wait_for_archives(job, 2)["archive"]
                reached = job.wait_for_step(known["step"] + 1)["step"]
                self.lose_all(job)
                self.go_on(job)
                report = self.expect_same_end(job, spec)
                [back] = [one for one in report["rewinds"] if one["timeline"] == 1000]
                self.assertGreaterEqual(back["version"], known["step"])
                self.assertLessEqual(back["version"], reached)
                self.assertIn("archive", back["reason"])

    def test_twice_and_again_and_counts_the_steps_that_are_done_again(self):
        job, spec = self.begin()
        reached = 0
        for _ in range(2):
            step = self.wait_for_later_archive(job, reached)["archive"]["step"]
            self.wait_while_it_runs(job, lambda: self.noted_step() > step, "the step is noted")
            reached = self.noted_step()
            self.lose_all(job)
            self.go_on(job)
        report = self.expect_same_end(job, spec)
        self.assertEqual(len([one for one in report["rewinds"] if one["timeline"] in (1000, 2000)]), 2)
        self.assertGreater(report["steps_redone"], 0)

    def test_on_several_hosts_that_are_all_lost_with_their_disks(self):
        job, spec = self.begin(hosts=True)
        self.wait_for_archives(job, 2)
        self.lose_all(job)
        self.go_on(job, hosts=True)
        self.wait_for_archives(job, 1)
        self.expect_same_end(job, spec)
        self.assertLessEqual(len(self.whole()), 2)

    def test_with_what_an_operator_had_changed(self):
        job, _ = self.begin()
        self.wait_for_archives(job, 1)
        job.root.send_signal(signal.SIGINT)
        job.wait_end()
        change = "train.optimizer.sgd.lr=0.003"
        reference = self.bench.resume_copy(job, [change, f"durability.archive.folder={self.bench.folder / 'others'}"])
        self.addCleanup(reference.__exit__)
        made = len(job.events("archived"))
        job.resume([change])
        self.wait_for_archives(job, made + 2)
        self.lose_all(job)
        self.go_on(job)
        self.pauses.end()
        report, wanted = (one.expect_complete(may_redo=True) for one in (job, reference))
        self.assertTrue((job.run_dir / "spec.1.yaml").exists())
        for name in SAME:
            self.assertEqual(report[name], wanted[name], name)

    def test_from_the_archive_before_when_the_newest_is_damaged_or_was_cut(self):
        job, spec = self.begin()
        self.wait_for_archives(job, 2)
        self.lose_all(job)
        older, newest = self.whole()
        file = next(newest.glob("*.snap"))
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        shutil.copytree(newest, newest.with_name(f"000099{newest.name[6:]}.part"))  # as of a root that was killed while it wrote
        self.go_on(job)
        self.expect_same_end(job, spec)
        self.assertIn(f"'{file}' is damaged", job.output())
        self.assertIn(f"of archive '{older}'", job.output())
        self.assertEqual(list(self.archives.glob("*.part")), [])

    def test_with_or_resume_which_begins_anew_where_there_is_no_archive(self):
        spec = self.archived_job(archive={"folder": str(self.archives), "every": EVERY})
        job = self.bench.start(spec)
        self.addCleanup(job.__exit__)
        arguments = [*job.arguments, "--or-resume", "--from-archive", str(self.archives)]
        self.lose_all(job) if job.run_dir.exists() else job.kill_everything()
        shutil.rmtree(job.run_dir, ignore_errors=True)
        job.start_root(arguments)
        self.wait_for_archives(job, 1)
        self.lose_all(job)
        job.start_root(arguments)
        self.expect_same_end(job, spec)
        self.assertIn("goes on from version", job.output())


class meanwhile(archived):
    def test_a_root_that_is_killed_while_it_makes_an_archive_leaves_the_last_ones(self):
        job, spec = self.begin()
        self.wait_for_archives(job, 1)
        before = self.whole()
        self.wait_while_it_runs(job, lambda: any(self.archives.glob("*-*.part")), "another one is in the making")
        job.root.kill()
        job.root.wait()
        job.expect_nothing_left()
        self.assertTrue(set(before) <= set(self.whole()))
        job.resume()
        self.wait_for_archives(job, 2)
        self.expect_same_end(job, spec)
        self.assertEqual(list(self.archives.glob("*.part")), [])
        self.assertLessEqual(len(self.whole()), 2)
        self.assertEqual(list(job.run_dir.glob("*.archived")), [])

    def test_a_disk_of_archives_that_is_full_does_not_hold_training_up(self):
        disk = self.enter_or_skip_disk()
        self.archives = disk.folder / "archives"
        self.archives.mkdir()
        disk.fill()
        job, spec = self.begin()
        self.wait_while_it_runs(job, lambda: job.events("archive-failed"), "it is told")
        self.assertEqual(len(job.events("archive-failed")), 1, "once")
        self.assertIn("No space left", job.events("archive-failed")[0]["text"])
        self.assertIn("no archive is made", job.ask("status")[1])
        step = job.status()["step"]
        job.wait_for_step(step + 5)
        disk.ballast().unlink()
        self.wait_for_archives(job, 1)
        self.assertNotIn("no archive is made", job.ask("status")[1])
        self.expect_same_end(job, spec)

    def enter_or_skip_disk(self):
        disk = small_disks.disk("-t", "tmpfs", "-o", "size=4m", "tmpfs")
        if disk.complaint:
            self.leave_out(RuntimeError(disk.complaint))
        self.addCleanup(disk.__exit__)
        return disk


class refused(archived):
    def complaint(self, arguments, code=BAD_USAGE):
        answer = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(answer.returncode, code, answer.stderr)
        return answer.stderr

    def test_are_archives_of_another_run_of_another_format_and_folders_that_are_not_free(self):
        job, _ = self.begin()
        self.wait_for_archives(job, 1)
        file = job.run_dir.with_suffix(".yaml")
        self.lose_all(job)
        other = self.bench.new_run_dir()
        self.assertIn("has archives of another run", self.complaint(["train", str(file), "--run-dir", str(other)]))
        self.assertFalse(other.exists(), "nothing is left behind")
        self.assertIn("is of another job than this file",
                      self.complaint(["train", str(file), "--run-dir", str(other), "--or-resume", "--from-archive", str(self.archives),
                                      "--set", "train.seed=8"]))
        self.assertFalse(other.exists())
        taken = self.bench.new_run_dir()
        taken.mkdir()
        (taken / "thesis").write_text("mine")
        self.assertIn("is not empty", self.complaint(["resume", str(taken), "--from-archive", str(self.archives)]))
        self.assertEqual([one.name for one in taken.iterdir()], ["thesis"])
        self.assertIn("there is no archive in", self.complaint(["resume", str(other), "--from-archive", str(taken)]))
        record = self.whole()[-1] / "archive.record"
        record.write_bytes(record.read_bytes().replace(b"dlrun-archive 1 ", b"dlrun-archive 2 ", 1))
        self.assertIn("has format 2, and this dlrun reads format 1",
                      self.complaint(["resume", str(other), "--from-archive", str(self.archives)]))
        self.assertFalse(other.exists())
        for one in self.whole():
            shutil.rmtree(one / "archive.record", ignore_errors=True)
            (one / "archive.record").unlink(missing_ok=True)
        self.assertIn("no archive in", self.complaint(["resume", str(other), "--from-archive", str(self.archives)], FAILED))
        self.assertFalse(other.exists())

    def test_are_values_that_make_no_sense(self):
        for archive, words in (({"every": "1s"}, "durability.archive.folder"),
                               ({"folder": str(self.archives), "every": "0s"}, "expected a duration from 1s"),
                               ({"folder": str(self.archives), "every": "soon"}, "expected a duration from 1s"),
                               ({"folder": str(self.archives), "often": "1s"}, "often"),
                               ({"folder": "/proc/nowhere"}, "cannot be written to")):
            with self.subTest(archive=archive):
                spec = self.archived_job(archive=archive)
                file = self.bench.folder / "job.yaml"
                file.write_text(json.dumps(spec))
                run_dir = self.bench.new_run_dir()
                self.assertIn(words, self.complaint(["train", str(file), "--run-dir", str(run_dir)]))
                self.assertFalse(run_dir.exists())
        spec = self.archived_job(log="off", archive={"folder": str(self.archives)})
        spec["train"].pop("evaluate_every")
        spec["train"].pop("keep_best")
        file.write_text(json.dumps(spec))
        self.assertIn("nothing is kept that could be archived", self.complaint(["train", str(file)]))
        spec = self.archived_job(archive={"folder": str(run_dir / "archives")})
        file.write_text(json.dumps(spec))
        self.assertIn("is in the run folder", self.complaint(["train", str(file), "--run-dir", str(run_dir)]))
        self.assertFalse(run_dir.exists())


if __name__ == "__main__":
    main()
