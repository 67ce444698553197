"""Jobs that are killed half way, so that `dlrun resume` can go on with another specification."""

import pathlib

from bench_case import bench_case
from dlrun_job import option

BAD_USAGE = 2
PARKED = 3
EPOCHS = 36  # half a second, where steps are quick
LR = "train.optimizer.sgd.lr"
NEVER = "86400s"  # as durability.max_recovery: nothing is snapshotted, and so nothing dropped, before the end


class changed_runs(bench_case):
    def durable_spec(self, log, **options):
        spec = self.spec(**{"epochs": EPOCHS, **options})
        spec["durability"] = {"log": log, "max_recovery": NEVER}
        return spec

    def killed_run(self, spec, step):
        """A run all of whose processes died after `step`; it ends with the test."""
        job = self.enterContext(self.bench.start(spec))
        job.kill_everything_at_step(step)
        return job

    def resumed_copy(self, job, overrides=(), options=()):
        return self.enterContext(self.bench.resume_copy(job, overrides, options))

    def steps_of(self, spec):
        train = spec["train"]
        records = train["microbatch_size"] * train["microbatches_per_step"]
        return train["epochs"] * -(-self.records // records)

    def expect_refused(self, job, options, *words):
        """Exit 2, all the words, and nothing in the run folder has changed."""
        before = job.contents()
        code, output, complaint = job.ask("resume", *options)
        said = f"{options[:4]}\n{output}\n{complaint}"
        self.assertEqual(code, BAD_USAGE, said)
        self.assertEqual(output, "", said)
        for word in words:
            self.assertIn(word, complaint, said)
        self.assertEqual(job.contents(), before, f"the run folder was changed\n{said}")

    def expect_end_with_parked(self, job, parked):
        """Completed but for these (step, slot, records), told in the report and by the exit code. @returns it."""
        self.assertEqual(job.wait_end(), PARKED, job.output())
        job.expect_nothing_left()
        report = job.report()
        missing = sum(records for _, _, records in parked)
        self.assertEqual(report["status"], "completed")
        self.assertEqual([(one["step"], one["slot"], one["records"]) for one in report["parked_shards"]], sorted(parked))
        self.assertEqual(report["samples_missing"], missing)
        self.assertEqual(report["samples_duplicated"], 0)
        self.assertIsNotNone(report["train_loss"], "the training left the numbers")
        return report


def set_options(*overrides):
    return option("--set", overrides)


def skip_options(*slots):
    return option("--skip", slots)


def gone_back(report):
    """The versions to which `dlrun resume` went back as it was asked to. PS shards that died at versions too far apart go back too."""
    return [one["version"] for one in report["rewinds"] if one["reason"] == "the operator goes back"]


def kept_specs(job):
    """The specifications in the run folder: name -> text."""
    return {file.name: file.read_text() for file in pathlib.Path(job.run_dir).glob("spec*.yaml")}
