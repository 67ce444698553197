"""`dlrun resume`: after a stop, after the death of everything; refused while the folder is in use, or done."""

import shutil
import signal

import any_kills
from bench_case import bench_case, main

BAD_USAGE = 2
INTERRUPTED = 130


class resume(bench_case):
    def spec_with(self, log, **train):
        spec = any_kills.make_spec("mlp_dropout", self.data, log, epochs=any_kills.SHORT_EPOCHS)
        spec["train"].update(train)
        return spec

    def expect_same_end(self, log, end, exit_code):
        reference = self.undisturbed(self.spec_with("off"))
        with self.bench.start(self.spec_with(log)) as job:
            with job.held_from_step(reference["steps"] // 3):
                end(job)
            self.assertEqual(job.wait_end(), exit_code, job.output())
            job.expect_nothing_left()
            job.resume()
            report = job.expect_complete(may_redo=True)
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
            self.assertEqual(report["samples_committed"], reference["samples_committed"])
            self.assertEqual(report["train_loss"], reference["train_loss"])

    def test_goes_on_after_a_stop(self):
        def stop(job):
            job.root.send_signal(signal.SIGINT)
            job.wait_for(lambda status: status["status"] == "stopping", "it stops")

        for log in ("every_step", "snapshots"):
            with self.subTest(log=log):
                self.expect_same_end(log, stop, INTERRUPTED)

    def test_goes_on_after_the_death_of_everything(self):
        for log in ("every_step", "snapshots"):
            with self.subTest(log=log):
                self.expect_same_end(log, lambda job: job.kill_everything(), -signal.SIGKILL)

    def test_goes_on_when_it_died_before_the_first_snapshot(self):
        def die_early(job):
            job.kill_everything()

        reference = self.undisturbed(self.spec_with("off"))
        with self.bench.start(self.spec_with("snapshots")) as job:
            job.wait_for(lambda status: len(status["roles"]) > 1, "it has begun to start roles")
            die_early(job)
            job.resume()
            self.assertEqual(job.expect_complete(may_redo=True)["parameters_sha256"],
                             reference["parameters_sha256"])

    def test_a_journal_that_is_lost_twice_costs_no_restart(self):
        """What starts must be newer than what opened the stores, whatever is known of it."""
        reference = self.undisturbed(self.spec_with("off"))
        spec = self.spec_with("every_step")
        with self.bench.start(spec) as job:
            for step in (reference["steps"] // 4, reference["steps"] // 2):
                with job.held_from_step(step):
                    job.kill("ps_shard", 1)
                    job.wait_for_processes([("ps_shard", 1)])
                    job.kill_everything()
                shutil.rmtree(job.run_dir / "journal")
                job.resume(["cluster.restart.intensity=2"])
            report = job.expect_complete(may_redo=True)
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])

    def test_refuses_a_folder_in_use(self):
        with self.bench.start(self.spec_with("every_step")) as job:
            with job.held_from_step(1):
                code, _, complaint = job.ask("resume")
            self.assertEqual(code, BAD_USAGE)
            self.assertIn("in use by process", complaint)
            job.expect_complete()

    def test_says_that_a_run_is_completed(self):
        with self.bench.start(self.spec_with("every_step", epochs=1)) as job:
            job.expect_complete()
            before = job.report()
            code, output, _ = job.ask("resume")
            self.assertEqual(code, 0)
            self.assertIn("is completed", output)
            self.assertEqual(job.ask("resume", "--set", "cluster.workers=2")[0], 0)
            for change in (("--set", "train.optimizer.sgd.lr=0.001"), ("--set", "train.seed=8"), ("--skip", "1:1"),
                           ("--from", "0")):
                code, _, complaint = job.ask("resume", *change)
                self.assertEqual(code, BAD_USAGE, change)
                self.assertIn(f"is completed: nothing is left of it that {change[0]} could change", complaint)
            self.assertEqual(job.report(), before)

    def test_refuses_a_run_that_kept_nothing(self):
        with self.bench.start(self.spec_with("off")) as job:
            job.kill_everything_at_step(1)
            code, _, complaint = job.ask("resume")
            self.assertEqual(code, BAD_USAGE)
            self.assertIn("durability.log is off", complaint)

    def test_refuses_what_is_no_run_folder(self):
        with self.bench.start(self.spec_with("every_step", epochs=1)) as job:
            job.expect_complete()
            shutil.rmtree(job.run_dir)
            job.run_dir.mkdir()
            code, _, complaint = job.ask("resume")
            self.assertEqual(code, BAD_USAGE)
            self.assertIn("no spec.yaml", complaint)


if __name__ == "__main__":
    main()
