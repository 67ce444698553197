"""`train --or-resume`: one command, called again and again, begins a run, goes on with it, and says how it ended."""

import shutil
import signal

import any_kills
import small_data
from bench_case import bench_case, main
from dlrun_job import all_run
from hosts_case import on_several_hosts
from service_manager import is_started_again, serviced_job

COMPLETED, FAILED, BAD_USAGE, LEFT_OUT, INTERRUPTED = 0, 1, 2, 3, 130
STEPS = (40, 80, 120)  # at which the root is killed
HELD_AT, GRACE_S = (20, 40, 60), 60  # on several hosts


class again_and_again(bench_case):
    def spec_with(self, **train):
        spec = any_kills.make_spec("mlp_dropout", self.data, "every_step", epochs=any_kills.SHORT_EPOCHS)
        spec["train"].update(train)
        return spec

    def start(self, spec):
        run_dir = self.bench.new_run_dir()
        self.file = small_data.write_spec(run_dir.with_suffix(".yaml"), spec)
        job = serviced_job(self.program, run_dir, ["train", str(self.file), "--run-dir", str(run_dir)])
        self.addCleanup(job.__exit__)
        return job

    def killed(self, spec, step=STEPS[0]):
        """A job whose root was killed there."""
        job = self.start(spec)
        job.kill_everything_at_step(step)
        self.assertTrue(is_started_again(job.root.returncode))
        return job

    def expect_ended(self, job, exit_code, *words):
        """Called again it says so, and does nothing."""
        before = job.contents()
        code, told, complaint = job.call()
        self.assertEqual(code, exit_code, told + complaint)
        for word in words:
            self.assertIn(word, told + complaint)
        self.assertEqual(job.contents(), before)
        job.expect_nothing_left()

    def expect_refused(self, job, *words, options=()):
        before = job.contents()
        code, told, complaint = job.call(*options)
        self.assertEqual((code, told), (BAD_USAGE, ""), complaint)
        for word in words:
            self.assertIn(word, complaint)
        self.assertEqual(job.contents(), before)

    def expect_same_end(self, job, spec):
        report = job.expect_complete(may_redo=True)
        self.assertEqual(report["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])
        return report


class on_one_host(again_and_again):
    def test_a_root_that_is_killed_three_times_is_started_again_by_nobody(self):
        spec = self.spec_with()
        steps = self.undisturbed(spec)["steps"]
        job = self.start(spec)
        for quarter in (1, 2, 3):
            with job.held_from_step(quarter * steps // 4, all_run):
                job.kill_root()
            self.assertIsNone(job.serve())
        self.expect_same_end(job, spec)
        self.assertEqual(job.serve(), COMPLETED)
        self.expect_ended(job, COMPLETED, "is completed")

    def test_the_model_is_exported_and_again_until_that_succeeds(self):
        spec, models = self.spec_with(), self.bench.folder / "models"
        models.mkdir()
        file = models / "model.safetensors"
        job = self.start(spec)
        report = self.expect_same_end(job, spec)
        options = ("--export", str(file))
        file.mkdir()
        code, told, complaint = job.call(*options)
        self.assertEqual(code, FAILED, told + complaint)
        self.assertIn("the job is complete, and its model cannot be written to", complaint)
        file.rmdir()
        self.expect_refused(job, "is no folder in which this user may write", options=("--export", str(self.bench.folder / "none" / "x")))
        code, _, complaint = job.call(*options)
        self.assertEqual(code, COMPLETED, complaint)
        self.assertIn(report["parameters_sha256"], file.read_bytes()[:4096].decode(errors="replace"))

    def test_a_completed_run_without_a_report_is_not_told_as_one_that_succeeded(self):
        spec, model = self.spec_with(), self.bench.folder / "model.safetensors"
        job = self.start(spec)
        self.expect_same_end(job, spec)
        report = job.run_dir / "report.json"
        whole, options = report.read_text(), ("--export", str(model))
        report.unlink()
        self.expect_refused(job, "its report.json, which alone says how it ended, is lost", f"dlrun export {job.run_dir}", options=options)
        report.write_text(whole[:-9])
        self.expect_refused(job, str(report), "not a report that this dlrun wrote", options=options)
        self.assertFalse(model.exists())
        report.write_text(whole)
        code, _, complaint = job.call(*options)
        self.assertEqual(code, COMPLETED, complaint)
        self.assertTrue(model.exists())

    def test_a_second_command_beside_it_is_refused(self):
        spec = self.spec_with()
        job = self.start(spec)
        with job.held_from_step(1, all_run):
            code, _, complaint = job.call()
            self.assertEqual(code, BAD_USAGE)
            self.assertIn(f"in use by process {job.root.pid}", complaint)
        self.expect_same_end(job, spec)

    def test_detached_it_begins_and_goes_on_and_says_that_it_has_ended(self):
        spec = self.spec_with()
        job = self.killed(spec)
        code, told, complaint = job.call("--detach", "--json")
        self.assertEqual(code, COMPLETED, complaint)
        self.assertIn('"type":"detached"', told)
        self.assertEqual(job.ask("attach")[0], COMPLETED)
        self.assertEqual(job.report()["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])
        code, told, complaint = job.call("--detach", "--json")
        self.assertEqual(code, COMPLETED, complaint)
        self.assertIn('"type":"report"', told)


class of_another_job(again_and_again):
    def test_it_is_refused_and_told_key_by_key(self):
        spec = self.spec_with()
        job = self.killed(spec)
        whole = self.file.read_text()
        for changed, words in ((self.spec_with(seed=8), ("train.seed was 7 there, and is 8",)),
                               (self.spec_with(optimizer={"sgd": {"lr": 0.5, "momentum": 0.9}}), ("train.optimizer.sgd.lr was", "dlrun resume")),
                               ({**spec, "name": "other"}, ("name was", "is other"))):
            small_data.write_spec(self.file, changed)
            self.expect_refused(job, "is of another job than this file", "--run-dir", *words)
        self.file.write_text(whole)
        self.expect_refused(job, "train.epochs was", options=["--set", "train.epochs=1"])
        job.begin()
        self.expect_same_end(job, spec)
        small_data.write_spec(self.file, self.spec_with(seed=8))
        self.expect_refused(job, "train.seed was 7 there, and is 8")  # also when it is completed

    def test_what_changes_no_bit_is_taken_from_the_file_and_else_stays_as_resume_set_it(self):
        spec = self.spec_with()
        job = self.killed(spec)
        job.resume(["cluster.workers=3"])
        self.kill_with_workers(job, 3, 2 * STEPS[0])
        job.begin_own()
        self.kill_with_workers(job, 3, 3 * STEPS[0])
        moved = self.bench.folder / ("a-folder-with-a-long-name" * 4) / "records"
        moved.parent.mkdir()
        shutil.move(self.data["records"], moved)
        spec["cluster"]["workers"] = 1
        spec["data"]["train"]["records"] = str(moved)
        small_data.write_spec(self.file, spec)
        job.begin()
        job.wait_for(lambda now: now["workers"]["wanted"] == 1, "the file's number of workers counts")
        self.expect_same_end(job, spec)
        self.assertIn(str(moved), (job.run_dir / "spec.yaml").read_text())

    def kill_with_workers(self, job, count, step):
        with job.held_from_step(step, all_run) as status:
            self.assertEqual(status["workers"]["wanted"], count)
            job.kill_everything()


class that_was_killed_while_it_began(again_and_again):
    def test_it_begins_anew(self):
        spec = self.spec_with(epochs=1)
        for left in ((), ("spec.yaml",), ("spec.yaml", ".write-rate", "run.record.a1b2c3")):
            with self.subTest(left=left):
                run_dir = self.bench.new_run_dir()
                (run_dir / "logs").mkdir(parents=True)
                for name in ("run.lock", *left):
                    (run_dir / name).write_text("cut o")
                file = small_data.write_spec(run_dir.with_suffix(".yaml"), spec)
                job = serviced_job(self.program, run_dir, ["train", str(file), "--run-dir", str(run_dir)])
                self.addCleanup(job.__exit__)
                self.expect_same_end(job, spec)
                self.assertEqual([name for name in left if name != "spec.yaml" and (run_dir / name).exists()], [])

    def test_a_record_without_anything_else_is_gone_on_with(self):
        spec = self.spec_with(epochs=1)
        job = self.killed(spec, step=1)
        for path in job.run_dir.iterdir():
            if path.name not in ("run.record", "spec.yaml", "run.lock"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        job.begin()
        self.expect_same_end(job, spec)

    def test_what_is_no_run_is_left_alone(self):
        job = self.killed(self.spec_with(epochs=1), step=1)
        (job.run_dir / "run.record").unlink()
        self.expect_refused(job, "is no run that this dlrun has begun", "--unrecorded", "--run-dir")


class that_has_ended(again_and_again):
    def test_failed_it_says_so_until_somebody_goes_on_with_it(self):
        spec = self.spec_with()
        spec["cluster"]["restart"] = {"intensity": 0}
        job = self.start(spec)
        with job.held_from_step(STEPS[0], all_run):
            job.kill("worker", 0)
        self.assertEqual(job.wait_end(), FAILED, job.output())
        self.expect_ended(job, FAILED, "has failed", job.report()["reason"], "dlrun resume")
        job.resume(["cluster.restart.intensity=10"])
        with job.held_from_step(STEPS[1], all_run):
            job.kill_everything()
        job.begin_own()
        self.expect_same_end(job, spec)

    def test_without_some_records_it_says_so(self):
        job = self.killed(self.spec_with())
        job.resume(options=["--skip", "1:1"])
        self.assertEqual(job.wait_end(), LEFT_OUT, job.output())
        self.assertFalse(is_started_again(LEFT_OUT))
        self.expect_ended(job, LEFT_OUT, "is completed")

    def test_a_stop_is_no_end(self):
        spec = self.spec_with()
        job = self.start(spec)
        with job.held_from_step(STEPS[0], all_run):
            job.root.send_signal(signal.SIGTERM)
        self.assertEqual(job.serve(), INTERRUPTED, job.output())
        job.begin()
        self.expect_same_end(job, spec)

    def test_it_keeps_nothing_to_go_on_with_and_is_refused_at_once(self):
        spec = self.spec_with()
        spec["durability"] = {"log": "off"}
        job = self.start(spec)
        self.assertEqual(job.wait_end(), BAD_USAGE)
        self.assertIn("durability.log: off", job.output())
        self.assertFalse(job.run_dir.exists())


class on_its_hosts(on_several_hosts):
    def test_a_root_that_is_killed_three_times_finds_all_others_as_they_were(self):
        spec = self.small_job(orphan_grace_s=GRACE_S)
        job = self.hosts.start(self.bench, spec, self.list, kind=serviced_job)
        self.addCleanup(job.__exit__)
        found, committed = set(), []
        for times, step in enumerate(HELD_AT):
            with job.held_from_step(step, all_run) as status:
                self.assertEqual(len(job.events("roles-adopted")), times)
                there = {role["pid"] for role in status["roles"]}
                kept = {pid for name in self.hosts.names[1:] for pid in self.roles_on(name)} & there
                self.assertTrue(kept)
                self.assertLessEqual(found, kept, "roles on other hosts keep their processes")
                found = kept
                committed.append(status["durable_step"])
                job.kill_root()
            self.assertIsNone(job.serve())
        status = job.wait_for(lambda now: now["step"] > HELD_AT[-1] + 5 and all_run(now), "steps are done again")
        self.assertLessEqual(found, {role["pid"] for role in status["roles"]})
        self.expect_committed_kept(self.expect_same_bits(job, spec, may_redo=True), committed)
        self.assertEqual([event["values"]["roles"] for event in job.events("roles-adopted")], [len(found)] * len(HELD_AT))
        self.assertEqual(job.serve(), COMPLETED)
        before = job.contents()
        job.begin()
        self.assertEqual(job.serve(), COMPLETED)
        self.assertIn("is completed", job.output().splitlines()[-1])
        self.assertEqual(job.contents(), before)
        self.expect_nobody_left()

    def test_a_host_that_is_not_there_yet_is_tried_again(self):
        spec = self.small_job(orphan_grace_s=GRACE_S)
        booting = self.bench.folder / "booting"
        script = f'if [ "$0" = beta ] && [ -e {booting} ]; then echo no route >&2; exit 255; fi; exec ip netns exec {self.hosts.prefix}$0 "$@"'
        self.list = self.hosts.write_file(self.list, {"start": ["sh", "-c", script, "{host}"]})
        job = self.hosts.start(self.bench, spec, self.list, kind=serviced_job)
        self.addCleanup(job.__exit__)
        with job.held_from_step(HELD_AT[0], all_run) as status:
            kept = {role["pid"] for role in status["roles"]} & set(self.roles_on("gamma"))
            self.assertTrue(kept)
            booting.touch()
            job.kill_root()
        self.hosts.kill_all("beta")
        self.assertIsNone(job.serve())
        self.assertEqual(job.wait_end(), FAILED, job.output())
        self.assertIn("no route", job.output())
        booting.unlink()
        self.assertIsNone(job.serve())
        status = job.wait_for(all_run, "the third root has all roles")
        self.assertLessEqual(kept, {role["pid"] for role in status["roles"]}, "those on gamma waited for it")
        self.expect_same_bits(job, spec, may_redo=True)

    def test_without_its_list_it_is_refused(self):
        spec = self.small_job(orphan_grace_s=GRACE_S)
        job = self.hosts.start(self.bench, spec, self.list, kind=serviced_job)
        self.addCleanup(job.__exit__)
        with job.held_from_step(HELD_AT[0], all_run):
            job.kill_root()
        whole = job.arguments
        at = whole.index("--hosts")
        job.arguments = whole[:at] + whole[at + 2:]
        job.begin()
        self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
        for word in ("beta (10.78.0.2, folder", "--hosts", "dlrun resume"):
            self.assertIn(word, job.output().splitlines()[-1])
        job.arguments = whole
        job.begin()
        self.expect_same_bits(job, spec, may_redo=True)


if __name__ == "__main__":
    main()
