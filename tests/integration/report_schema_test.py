"""docs/report.schema.json: real reports fit, however the run ended, and nothing fits that it does not name."""

import copy
import json
import pathlib
import signal

import jsonschema
from bench_case import main
from changed_runs import changed_runs, skip_options

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "docs/report.schema.json"
FAILED, INTERRUPTED = 1, 130
EPOCHS = 12
ENDLESS = 100000


def objects(value, path=()):
    """The place of every object in a document, itself included."""
    if isinstance(value, dict):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from objects(inner, (*path, key))


def at(document, path):
    for key in path:
        document = document[key]
    return document


class report_schema(changed_runs):
    schema = json.loads(SCHEMA.read_text())

    def setUp(self):
        super().setUp()
        self.validator = jsonschema.Draft202012Validator(self.schema)

    def fits(self, report):
        return self.validator.is_valid(report)

    def expect_fits(self, report, status):
        self.assertEqual(report["status"], status)
        problems = [f"{'.'.join(map(str, one.path))}: {one.message}" for one in self.validator.iter_errors(report)]
        self.assertEqual(problems, [])

    def expect_names_everything(self, report):
        """A key more, or a key less, and it does not fit."""
        for path in objects(report):
            changed = copy.deepcopy(report)
            at(changed, path)["surprise"] = "of a later version"
            self.assertFalse(self.fits(changed), f"a key more in {path}")
        for key in report:
            changed = {name: value for name, value in report.items() if name != key}
            self.assertEqual(self.fits(changed), key == "train_accuracy", f"without {key}")

    def full_spec(self):
        spec = self.durable_spec("snapshots", epochs=EPOCHS)
        spec["data"]["validation"] = {"split": 0.2}
        spec["train"].update({"evaluate_every": "2 epochs", "keep_best": {"metric": "accuracy"}})
        return spec

    def test_it_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)

    def test_of_a_run_that_is_completed_with_losses_rewinds_and_a_slot_left_out(self):
        job = self.killed_run(self.full_spec(), 20)
        job.resume(options=skip_options("3:1"))
        with job.held_from_step(30):
            job.kill("worker", 0)
        job.wait_end()
        report = job.report()
        self.expect_fits(report, "completed")
        for field in ("recoveries", "rewinds", "parked_shards", "evaluations", "best", "validation"):
            self.assertTrue(report[field], field)
        self.expect_names_everything(report)

    def test_of_a_run_that_was_interrupted(self):
        with self.bench.start(self.durable_spec("snapshots", epochs=ENDLESS)) as job:
            job.wait_for_step(10)
            job.root.send_signal(signal.SIGINT)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            self.expect_fits(job.report(), "interrupted")

    def test_of_a_run_that_failed(self):
        with self.bench.start(self.durable_spec("snapshots", epochs=ENDLESS), ["cluster.restart.intensity=0"]) as job:
            job.wait_until_all_run()
            job.kill("worker", 0)
            self.assertEqual(job.wait_end(), FAILED, job.output())
            self.expect_fits(job.report(), "failed")

    def test_of_a_run_that_failed_before_its_coordinator_could_write_it(self):
        with self.bench.start(self.durable_spec("off", epochs=ENDLESS)) as job:
            job.wait_until_all_run()
            job.kill("coordinator")
            self.assertEqual(job.wait_end(), FAILED, job.output())
            self.expect_fits(job.report(), "failed")


if __name__ == "__main__":
    main()
