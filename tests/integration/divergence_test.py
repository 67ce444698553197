"""A training that leaves the numbers: it ends, says where and what to do, and what it says to do works."""

import re
import struct

import small_data
from bench_case import main
from changed_runs import LR, changed_runs, gone_back, skip_options

FAILED = 1
GOOD_RATE, WILD_RATE = "0.02", "100000"


class diverged(changed_runs):
    def expect_divergence(self, job):
        """@returns step, and slot and the records that are named: None where only the sum of the slots is too large."""
        self.assertEqual(job.wait_end(), FAILED, job.output())
        job.expect_nothing_left()
        report, reason = job.report(), job.output().splitlines()[-1]
        self.assertEqual(report["status"], "failed")
        self.assertEqual(report["error"], "diverged")
        self.assertIn(report["reason"], reason)
        found = re.search(r"diverged at step (\d+)(?:, slot (\d+): .* its \d+ records are ([\d, ]+)|: .* too large for a float)",
                          reason)
        self.assertTrue(found, reason)
        step = int(found[1])
        self.assertLessEqual(report["steps"], step, "what is no number was applied")
        if found[2] is None:
            return step, None, None
        return step, int(found[2]), [int(record) for record in found[3].split(",") if record.strip()]

    def expect_ways_out(self, job, step, slot):
        reason = job.report()["reason"]
        self.assertIn(f"dlrun resume {job.run_dir} --from STEP --set train.optimizer", reason)
        without = f"dlrun resume {job.run_dir} --skip {step}:{slot}"
        self.assertEqual(without in reason, slot is not None, reason)


class by_the_learning_rate(diverged):
    def test_from_the_begin_of_the_job_on_the_right_one_gives_the_result_that_it_gives(self):
        reference = self.undisturbed(self.durable_spec("off"))
        for log in ("every_step", "snapshots"):
            with self.subTest(log=log):
                spec = self.durable_spec(log)
                spec["train"]["optimizer"]["sgd"]["lr"] = float(WILD_RATE)
                job = self.enterContext(self.bench.start(spec))
                step, slot, _ = self.expect_divergence(job)
                self.expect_ways_out(job, step, slot)
                job.resume()
                self.assertEqual(self.expect_divergence(job)[0], step, "without a change it is the same again")
                job.resume([f"{LR}={GOOD_RATE}"], ["--from", "0"])
                report = job.expect_complete(may_redo=True)
                self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
                self.assertEqual(report["train_loss"], reference["train_loss"])

    def test_a_stretch_with_a_wrong_one_can_be_undone(self):
        reference = self.undisturbed(self.durable_spec("off"))
        job = self.killed_run(self.durable_spec("every_step"), reference["steps"] // 3)
        job.resume([f"{LR}={WILD_RATE}"])
        step, _, _ = self.expect_divergence(job)
        wrong_from, = gone_back(job.report())
        self.assertGreater(step, wrong_from)
        kept = re.search(r"versions 0 to (\d+)", job.report()["reason"])
        self.assertTrue(kept and wrong_from <= int(kept[1]) <= step, job.report()["reason"])
        job.resume([f"{LR}={GOOD_RATE}"], ["--from", str(wrong_from)])
        report = job.expect_complete(may_redo=True)
        self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
        self.assertEqual(gone_back(report), [wrong_from] * 2)

    def test_a_run_that_keeps_nothing_says_so(self):
        spec = self.durable_spec("off")
        spec["train"]["optimizer"]["sgd"]["lr"] = float(WILD_RATE)
        with self.bench.start(spec) as job:
            self.expect_divergence(job)
            self.assertIn("nothing was kept, since durability.log is off", job.report()["reason"])

    def test_a_step_that_the_job_does_not_have_is_refused(self):
        spec = self.durable_spec("every_step")
        job = self.killed_run(spec, 10)
        steps = self.steps_of(spec)
        for text in (str(steps), "18446744073709551615"):
            self.expect_refused(job, ["--from", text], f"no step {text}", str(steps - 1))


class by_the_sum(diverged):
    """All records are one value, and one class that the model does not believe: each adds it to the gradient of one
    weight, and so the 8 of a slot make 1e38, and only the 32 of a step more than a float can be."""

    VALUE, CLASS = 1.25e37, 3

    def same_data(self):
        values, classes = self.bench.folder / "values.npy", self.bench.folder / "classes.npy"
        values.write_bytes(small_data.npy((self.records, 1), struct.pack("<f", self.VALUE) * self.records))
        classes.write_bytes(small_data.npy((self.records,), bytes([self.CLASS]) * self.records, "|u1"))
        return {"format": "npy", "records": str(values), "labels": str(classes)}

    def test_whoever_adds_it_up_sees_it_in_the_same_step(self):
        for workers in (1, 2, 4):
            with self.subTest(workers=workers):
                spec = self.durable_spec("every_step", workers=workers)
                spec["data"]["train"] = self.same_data()
                spec["model"] = {"input": [1], "layers": [{"linear": {"out_features": 10, "bias": False}}]}
                spec["train"]["optimizer"] = {"sgd": {"lr": 1e-38}}
                job = self.enterContext(self.bench.start(spec))
                self.assertEqual(self.expect_divergence(job), (0, None, None))
                self.expect_ways_out(job, 0, None)
                job.resume()
                self.assertEqual(self.expect_divergence(job), (0, None, None))


class by_the_update(diverged):
    """Of four rows of an embedding two are never read: their gradient is 0, and Adam without eps divides 0 by 0. The job
    is as long as its one step, so that no gradient of a later one would show it."""

    def setUp(self):
        super().setUp()
        (self.bench.folder / "rows.csv").write_text("row,y\n" + "0,0\n1,1\n" * 2)
        self.job = self.durable_spec("every_step", workers=1)
        self.job["data"] = {"train": {"format": "csv", "records": str(self.bench.folder / "rows.csv"), "csv": {"target": "y"}}}
        self.job["model"] = {"input": [1], "layers": [{"embedding": {"num_embeddings": 4, "embedding_dim": 2}}, "flatten",
                                                      {"linear": {"out_features": 2}}]}
        self.job["train"].update(epochs=1, microbatch_size=4, microbatches_per_step=1,
                                 optimizer={"adam": {"lr": 0.1, "eps": 0}})

    def test_the_last_version_is_not_made_of_it(self):
        for shards in (1, 2):
            with self.subTest(shards=shards):
                self.job["cluster"]["ps_shards"] = shards
                job = self.enterContext(self.bench.start(self.job))
                self.assertEqual(job.wait_end(), FAILED, job.output())
                reason = job.output().splitlines()[-1]
                self.assertIn("diverged at step 0: the gradient is finite, but the update makes nan of 'embedding0.weight' "
                              "at [2, 0]", reason)
                self.assertEqual((job.report()["status"], job.report()["steps"]), ("failed", 0))
                job.resume(["train.optimizer.adam.eps=1e-8"], ["--from", "0"])
                job.expect_complete(may_redo=True)


class by_one_record(diverged):
    """All bytes of all records are 0, so they move nothing; those of one are 255, and worth a million."""

    BAD = 1234
    EPOCHS = 2

    def bad_data(self):
        records = bytearray(self.records * small_data.SIDE ** 2)
        size = small_data.SIDE ** 2
        records[self.BAD * size:(self.BAD + 1) * size] = b"\xff" * size
        file = self.bench.folder / "bad-images"
        small_data.write_idx(file, [self.records, small_data.SIDE, small_data.SIDE], bytes(records))
        return {"records": str(file), "labels": self.data["labels"], "normalize": {"mean": 0, "std": 1e-6}}

    def test_without_its_slot_the_training_goes_on(self):
        spec = self.durable_spec("every_step", epochs=self.EPOCHS)
        spec["data"]["train"] = self.bad_data()
        linear = {"linear": {"out_features": 16, "bias": False}}
        spec["model"]["layers"] = ["flatten", *[linear] * 6, {"linear": {"out_features": 10, "bias": False}}]
        spec["train"]["optimizer"] = {"sgd": {"lr": 1000}}
        job = self.enterContext(self.bench.start(spec))
        step, slot, records = self.expect_divergence(job)
        self.assertIn(self.BAD, records)
        self.assertGreaterEqual(step, self.steps_of(spec) // 2, "in the first epoch it only spoils the parameters")
        self.expect_ways_out(job, step, slot)
        job.resume(options=skip_options(f"{step}:{slot}"))
        self.expect_end_with_parked(job, [(step, slot, 8)])


if __name__ == "__main__":
    main()
