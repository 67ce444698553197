"""Evaluation on the way: the same numbers, the same end and the same best version, whoever is killed meanwhile."""

import json

import small_data
from bench_case import bench_case, main
from dlrun_job import all_run, until_held

EPOCHS = 12
STEPS_PER_EPOCH = 63  # 2003 records in steps of 4 * 8
VALIDATION_RECORDS = 1501
SAME = ("steps", "parameters_sha256", "evaluations", "validation", "best", "stopped_early", "samples_committed")


class evaluation_on_the_way(bench_case):
    def setUp(self):
        super().setUp()
        # Of other prototypes: what is learnt is of no use for them, so that their loss soon rises.
        self.foreign = small_data.write_images(self.bench.folder, "foreign", VALIDATION_RECORDS, seed=2)

    def evaluated_spec(self, log, **train):
        spec = self.spec(epochs=EPOCHS, workers=2)
        spec["data"]["validation"] = dict(self.foreign)
        spec["train"].update({"evaluate_every": "1 epoch", "keep_best": {}, **train})
        spec["durability"] = {"log": log}
        return spec

    def killed(self, spec, plan):
        """The report of a run in which `plan` = [(step, role, index)] is killed; role None: everything."""
        return until_held(lambda: self.killed_once(spec, plan))

    def killed_once(self, spec, plan):
        with self.bench.start(spec) as job:
            for step, role, index in plan:
                with job.held_from_step(step, all_run):
                    if role:
                        job.kill(role, index)
                    else:
                        job.kill_everything()
                if not role:
                    job.resume()
            return job.expect_complete(may_redo=True), job

    def expect_same(self, report, reference):
        for field in SAME:
            self.assertEqual(report[field], reference[field], field)

    def expect_best_on_disk(self, job, report):
        for shard in range(2):
            kept = [int(file.name.split("-")[0]) for file in job.run_dir.glob(f"ps_shard-{shard}/snapshots/*.snap")]
            self.assertIn(report["best"]["step"], kept)
            self.assertLessEqual(len(kept), 6, "snapshots that nobody needs are dropped")
        code, said, complaint = job.ask("evaluate", "--best", "--json")
        self.assertEqual(code, 0, complaint)
        best = json.loads(said)
        self.assertEqual((best["step"], best["loss"]), (report["best"]["step"], report["best"]["value"]))

    def test_numbers_are_those_of_an_undisturbed_run_and_change_no_bit_of_the_training(self):
        spec = self.evaluated_spec("every_step")
        reference = self.undisturbed(spec)
        self.assertEqual([one["step"] for one in reference["evaluations"]],
                         [STEPS_PER_EPOCH * (1 + epoch) for epoch in range(EPOCHS)])
        self.assertEqual([one["epoch"] for one in reference["evaluations"]], list(range(1, EPOCHS + 1)))
        self.assertEqual(reference["evaluations"][-1]["loss"], reference["validation"]["loss"])
        best = min(reference["evaluations"], key=lambda one: one["loss"])
        self.assertEqual(reference["best"], {"step": best["step"], "metric": "loss", "value": best["loss"]})
        self.assertFalse(reference["stopped_early"])
        report, job = self.killed(spec, [(STEPS_PER_EPOCH + 1, "worker", 0), (3 * STEPS_PER_EPOCH, "ps_shard", 0),
                                         (4 * STEPS_PER_EPOCH + 1, "coordinator", 0), (6 * STEPS_PER_EPOCH, None, 0)])
        self.expect_same(report, reference)
        self.expect_best_on_disk(job, report)
        told = {event["text"].split(" ")[1] for event in job.events("evaluated")}
        self.assertGreaterEqual(len(told), EPOCHS - 2, "each is told when it is there, unless the teller dies just then")
        plain = self.evaluated_spec("every_step")
        for key in ("evaluate_every", "keep_best"):
            del plain["train"][key]
        self.assertEqual(self.undisturbed(plain)["parameters_sha256"], reference["parameters_sha256"])

    def test_training_is_stopped_early_at_the_same_version_whoever_dies(self):
        for log in ("every_step", "snapshots"):
            with self.subTest(log):
                spec = self.evaluated_spec(log, early_stopping={"patience": 6})
                reference = self.undisturbed(spec)
                self.assertTrue(reference["stopped_early"])
                self.assertLess(reference["steps"], EPOCHS * STEPS_PER_EPOCH)
                self.assertEqual(reference["evaluations"][-1]["step"], reference["steps"])
                self.assertEqual(reference["validation"]["loss"], reference["evaluations"][-1]["loss"])
                report, job = self.killed(spec, [(1, "worker", 1), (STEPS_PER_EPOCH - 1, "coordinator", 0),
                                                 (STEPS_PER_EPOCH, "worker", 0), (2 * STEPS_PER_EPOCH, "ps_shard", 1),
                                                 (2 * STEPS_PER_EPOCH + 1, None, 0)])
                self.expect_same(report, reference)
                self.expect_best_on_disk(job, report)
                self.assertTrue(job.events("stopped-early"), "once, and again after a death at the very end")


if __name__ == "__main__":
    main()
