"""A run folder with what does not belong there, one that is taken away, and output that would replace what is read."""

import os
import pathlib
import resource
import shutil
import subprocess

import paused_runs
import small_data
from bench_case import bench_case, main
from dlrun_job import running_job, wait_until

BAD_INPUT, FAILED = 2, 1
NOBODY = 65534
ANSWER_S = 30


class with_a_run(bench_case):
    records = 203

    def setUp(self):
        super().setUp()
        self.run_dir = self.bench.folder / "trained"
        spec = self.spec("mlp_dropout", epochs=2, workers=1, ps_shards=1)
        spec["durability"] = {"log": "every_step"}
        with self.bench.start(spec) as job:
            job.expect_complete()
        job.run_dir.rename(self.run_dir)

    def dlrun(self, *arguments, **options):
        done = subprocess.run([self.bench.program, *map(str, arguments)], capture_output=True, text=True, timeout=ANSWER_S,
                              cwd=self.bench.folder, stdin=subprocess.DEVNULL, **options)
        self.assertNotIn("exception", done.stdout + done.stderr)
        return done

    def expect_refused(self, arguments, *words, **options):
        done = self.dlrun(*arguments, **options)
        self.assertEqual(done.returncode, BAD_INPUT, done)
        last = (done.stdout + done.stderr).splitlines()[-1]
        for word in words:
            self.assertIn(word, last)


class what_is_no_file(with_a_run):
    """In the place of one that the run keeps there: nobody waits for its other end, and nobody reads it for empty."""

    def replaced(self, name, make):
        file = self.run_dir / name
        kept = file.read_bytes()
        file.unlink()
        make(file)
        return file, kept

    def put_back(self, file, kept):
        shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()
        file.write_bytes(kept)

    def test_is_named_by_every_verb(self):
        verbs = [["resume", self.run_dir], ["export", self.run_dir], ["evaluate", self.run_dir], ["events", self.run_dir],
                 ["logs", self.run_dir], ["explain", self.run_dir], ["attach", self.run_dir],
                 ["predict", self.run_dir, "--input", self.data["records"]]]
        for name, make, what in (("events.jsonl", os.mkfifo, "a FIFO"), ("run.record", os.mkfifo, "a FIFO"),
                                 ("run.lock", os.mkfifo, "a FIFO"), ("logs/worker-0.log", os.mkfifo, "a FIFO"),
                                 ("run.record", pathlib.Path.mkdir, "a folder"), ("logs/worker-0.log", pathlib.Path.mkdir, "a folder")):
            file, kept = self.replaced(name, make)
            for verb in verbs:
                with self.subTest(name=name, what=what, verb=verb[0]):
                    self.expect_refused(verb, str(file), f"is no file but {what}", "remove")
            self.put_back(file, kept)

    def test_tells_no_place_of_a_root(self):
        os.mkfifo(self.run_dir / "agent.json")
        for verb in (["status"], ["stop"], ["scale", "--workers", "2"]):
            with self.subTest(verb=verb[0]):
                self.assertEqual(self.dlrun(verb[0], self.run_dir, *verb[1:]).returncode, BAD_INPUT)

    def test_a_link_in_the_place_of_the_lock_leads_to_nothing_that_is_emptied(self):
        others = self.bench.folder / "somebody-elses"
        others.write_text("kept\n")
        file, kept = self.replaced("run.lock", lambda file: file.symlink_to(others))
        self.expect_refused(["resume", self.run_dir], str(file), "symbolic link")
        self.assertEqual(others.read_text(), "kept\n")
        self.put_back(file, kept)

    def test_a_damaged_report_is_told_with_a_way_out(self):
        (self.run_dir / "report.json").write_text("{\"job\": 1")
        done = self.dlrun("export", self.run_dir, "--best")
        self.assertEqual(done.returncode, BAD_INPUT, done)

    def test_what_may_not_be_read_is_not_empty(self):
        if os.geteuid() != 0:
            self.skipTest("it takes root to become somebody else")
        for path in (self.bench.folder, self.run_dir, self.run_dir / "logs"):
            path.chmod(0o755)
        for file in (self.run_dir / "events.jsonl", *(self.run_dir / "logs").iterdir()):
            file.chmod(0o600)
        for verb in ("events", "logs", "explain"):
            with self.subTest(verb=verb):
                self.expect_refused([verb, self.run_dir], "cannot read", "Permission denied", user=NOBODY, group=NOBODY, extra_groups=[])


class one_of_somebody_else(with_a_run):
    """Whoever calls may read it, and not write, as on a volume that is mounted read-only."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("it takes root to become somebody else")
        self.open_to_readers(self.run_dir)

    def open_to_readers(self, run_dir):
        for path in (self.bench.folder, run_dir, *run_dir.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)

    def as_nobody(self, *arguments, **options):
        return self.dlrun(*arguments, user=NOBODY, group=NOBODY, extra_groups=[], **options)

    def test_completed_is_said_to_be(self):
        spec = self.spec("mlp_dropout", epochs=2, workers=1, ps_shards=1)
        spec["durability"] = {"log": "every_step"}
        file = small_data.write_spec(self.bench.folder / "job.yaml", spec)
        before = (self.run_dir / "report.json").read_bytes()
        for words in (["resume", self.run_dir], ["train", file, "--run-dir", self.run_dir, "--or-resume"]):
            with self.subTest(verb=words[0]):
                done = self.as_nobody(*words)
                self.assertEqual(done.returncode, 0, done)
                self.assertIn("is completed", done.stdout)
        self.assertEqual((self.run_dir / "report.json").read_bytes(), before)

    def test_that_is_to_go_on_is_refused(self):
        spec = self.spec("mlp_dropout", epochs=200, workers=1, ps_shards=1)
        spec["durability"] = {"log": "every_step"}
        with self.bench.start(spec) as job:
            job.kill_everything_at_step(1)
            self.open_to_readers(job.run_dir)
            done = self.as_nobody("resume", job.run_dir)
            self.assertEqual(done.returncode, BAD_INPUT, done)
            self.assertIn(f"cannot write to the run folder '{job.run_dir}': Permission denied", done.stderr)

    def test_is_not_left_when_the_umask_closes_it_to_its_owner(self):
        place = self.bench.folder / "nobodys"
        place.mkdir()
        place.chmod(0o777)
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.spec("mlp_dropout"))
        for mask in (0o277, 0o400):
            with self.subTest(umask=oct(mask)):
                done = self.as_nobody("train", file, "--run-dir", place / "a" / "u", umask=mask)
                self.assertEqual(done.returncode, BAD_INPUT, done)
                self.assertIn(f"{place}/a/u", done.stderr)
                self.assertEqual(list(place.iterdir()), [])


class output(with_a_run):
    def test_never_replaces_what_is_read(self):
        records, weights = pathlib.Path(self.data["records"]), self.bench.folder / "weights.safetensors"
        self.assertEqual(self.dlrun("export", self.run_dir, "--output", weights).returncode, 0)
        spec = self.run_dir / "spec.yaml"
        part = [self.run_dir / name for name in ("run.record", "spec.yaml", "events.jsonl", "ps_shard-0/FORMAT", "logs/worker-0.log")]
        link = self.bench.folder / "link"
        link.symlink_to(records)
        predict = ["predict", self.run_dir, "--input", records, "--output"]
        from_file = ["predict", weights, "--spec", spec, "--input", records, "--output"]
        cases = [*[(["export", self.run_dir, "--output"], one) for one in part], *[(predict, one) for one in part],
                 (predict, records), (predict, link), (from_file, weights), (from_file, spec),
                 *[(["export", self.run_dir, "--output"], one) for one in (records, pathlib.Path(self.data["labels"]), link)],
                 (predict, pathlib.Path(self.data["labels"])),
                 (["train", spec, "--run-dir", self.bench.folder / "another", "--export"], records)]
        for words, target in cases:
            with self.subTest(verb=words[0], target=target.name):
                before = target.read_bytes()
                self.expect_refused([*words, target], str(target), "choose another file")
                self.assertEqual(target.read_bytes(), before)

    def test_of_a_users_own_goes_into_the_run_folder_again_and_again(self):
        for _ in range(2):
            self.assertEqual(self.dlrun("export", self.run_dir, "--output", self.run_dir / "model.safetensors").returncode, 0)

    def test_beyond_the_limit_of_a_file_is_an_error_with_a_reason(self):
        done = self.dlrun("export", self.run_dir, "--output", "weights", preexec_fn=limit_files)
        self.assertEqual(done.returncode, FAILED, done)
        self.assertIn("File too large", done.stderr)
        self.assertFalse((self.bench.folder / "weights").exists())


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


class arguments(with_a_run):
    def test_that_are_empty_are_not_left_out(self):
        job = self.run_dir / "spec.yaml"
        for words in (["train", job, "--run-dir", ""], ["train", job, "--hosts", ""], ["status", ""], ["init", "tabular", ""],
                      ["predict", self.run_dir, "--input", self.data["records"], "--output", ""]):
            with self.subTest(words=words[-2:]):
                done = self.dlrun(*words)
                self.assertEqual(done.returncode, BAD_INPUT, done)
                self.assertIn("empty", done.stderr)

    def test_of_a_slot_have_one_way_to_be_written(self):
        for slot in ("01:1", "1:01", "1:1:00"):
            self.expect_refused(["resume", self.run_dir, "--skip", slot])

    def test_for_the_version_are_a_verb_and_an_option(self):
        told = self.dlrun("--version")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertEqual(told.stdout, self.dlrun("version").stdout)

    def test_that_name_no_folder_are_told_so(self):
        self.expect_refused(["train", self.run_dir / "spec.yaml", "--run-dir", "/dev/null"], "/dev/null", "is no folder")


class taken_away(bench_case):
    def running(self, epochs):
        pauses = self.enterContext(paused_runs.pauses(self.bench.folder, 0.01))
        spec = paused_runs.with_pauses(self.spec("mlp_dropout", epochs=epochs))
        spec["durability"] = {"log": "snapshots"}
        job = self.bench.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_until_all_run()
        return job, spec, pauses

    def expect_same_bits(self, job, spec, pauses):
        pauses.end()
        self.assertEqual(job.expect_complete(may_redo=True)["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])

    def expect_failed(self, job):
        self.assertEqual(job.wait_end(), FAILED, job.output())
        last = job.output().splitlines()[-1]
        self.assertIn("was removed, moved or replaced while the run went on", last)
        self.assertIn(str(job.run_dir), last)

    def test_while_the_run_goes_on_it_ends_the_run(self):
        job, _, _ = self.running(epochs=1000)
        wait_until(lambda: shutil.rmtree(job.run_dir, ignore_errors=True) or not job.run_dir.exists(), "it is gone with what was just made in it")
        self.expect_failed(job)
        job.expect_nothing_left()

    def test_what_is_put_in_its_place_is_left_alone(self):
        job, _, _ = self.running(epochs=1000)
        job.run_dir.rename(job.run_dir.with_name("moved"))
        job.run_dir.mkdir()
        (job.run_dir / "kept").write_text("of somebody else")
        self.expect_failed(job)
        job.expect_nothing_left()
        self.assertEqual([file.name for file in job.run_dir.iterdir()], ["kept"])

    def test_another_run_in_its_place_goes_on(self):
        job, spec, pauses = self.running(epochs=4)
        job.run_dir.rename(job.run_dir.with_name("moved"))
        other = running_job(self.bench.program, job.run_dir, job.arguments, job.run_dir.with_suffix(".other.out"))
        self.addCleanup(other.__exit__)
        self.expect_failed(job)
        self.expect_same_bits(other, spec, pauses)

    def test_by_another_name_it_can_be_put_back(self):
        job, spec, pauses = self.running(epochs=4)
        moved = job.run_dir.with_name("moved")
        job.run_dir.rename(moved)
        self.expect_failed(job)
        job.expect_nothing_left()
        shutil.rmtree(job.run_dir, ignore_errors=True)
        moved.rename(job.run_dir)
        job.resume()
        self.expect_same_bits(job, spec, pauses)

    def test_the_folder_of_snapshots_alone_is_made_again(self):
        job, spec, pauses = self.running(epochs=4)
        with job.held_from_step(1):  # so that nothing is made there meanwhile
            shutil.rmtree(job.run_dir / "ps_shard-0/snapshots")
        self.expect_same_bits(job, spec, pauses)


if __name__ == "__main__":
    main()
