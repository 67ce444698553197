"""`dlrun export`, `evaluate`, `predict` and train.init_from on real runs."""

import csv
import io
import json
import math
import re
import subprocess

import small_data
import weights_file
from bench_case import bench_case, main

BAD_USAGE = 2
LONG = 100  # epochs: it runs for some seconds
TORN_WRITE = re.compile(r"^dlrun: storage-damaged: .* bytes dropped from byte \d+ on: the write at byte \d+ was torn\n", re.MULTILINE)


class weights_case(bench_case):
    records = 403
    run_was_killed = False

    def setUp(self):
        super().setUp()
        self.validation = small_data.write_images(self.bench.folder, "validation", 203, seed=2)

    def make_spec(self, model, log, epochs=2):
        spec = self.spec(model, epochs=epochs)
        spec["data"]["validation"] = self.validation
        spec["durability"] = {"log": log, "max_recovery": "86400s"}  # one snapshot, at the end
        return spec

    def dlrun(self, *arguments):
        return subprocess.run([self.bench.program, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              cwd=self.bench.folder, stdin=subprocess.DEVNULL)

    def answer(self, *arguments):
        """What it prints; it must not complain, of a killed run but of a write that SIGKILL tore."""
        done = self.dlrun(*arguments)
        complaint = TORN_WRITE.sub("", done.stderr) if self.run_was_killed else done.stderr
        self.assertEqual((done.returncode, complaint), (0, ""), done)
        return done.stdout

    def refusal(self, *arguments):
        done = self.dlrun(*arguments)
        self.assertEqual((done.returncode, done.stdout), (BAD_USAGE, ""), done)
        return done.stderr

    def export(self, folder, name, *options):
        """@returns the file, and what was said of it."""
        file = self.bench.folder / name
        return file, json.loads(self.answer("export", folder, "--output", file, "--json", *options))

    def expect_validation_of(self, report, *arguments):
        """Bit for bit: JSON has every digit."""
        told = json.loads(self.answer("evaluate", *arguments, "--json"))
        for name, value in report["validation"].items():
            self.assertEqual(told[name], value, name)

    def expect_predictions_of(self, report, *arguments):
        """Their hits are the accuracy; both formats tell the same."""
        labels = (self.bench.folder / "validation-labels").read_bytes()[8:]
        arguments = ("predict", *arguments, "--input", self.validation["records"])
        rows = list(csv.DictReader(io.StringIO(self.answer(*arguments))))
        self.assertEqual([int(row["record"]) for row in rows], list(range(len(labels))))
        hits = sum(int(row["class"]) == label for row, label in zip(rows, labels))
        self.assertEqual(hits / len(labels), report["validation"]["accuracy"])
        file = self.bench.folder / "predictions.json"
        self.assertEqual(self.answer(*arguments, "--format", "json", "--output", file, "--threads", "3"), "")
        for row, line in zip(rows, map(json.loads, file.read_text().splitlines()), strict=True):
            self.assertEqual(line["class"], int(row["class"]))
            self.assertEqual(line["outputs"], [float(row[f"output{i}"]) for i in range(len(line["outputs"]))])


class weights(weights_case):
    def test_a_finished_run_is_exported_evaluated_and_predicts(self):
        for model, log in (("mlp_dropout", "every_step"), ("cnn_batch_norm", "snapshots")):
            with self.subTest(model=model, log=log), self.bench.start(self.make_spec(model, log)) as job:
                report = job.expect_complete()
                before = job.contents()
                file, told = self.export(job.run_dir, f"{model}.safetensors")
                self.assertEqual(told["step"], report["steps"])
                self.assertEqual(told["parameters_sha256"], report["parameters_sha256"])
                metadata, tensors = weights_file.read(file)
                self.assertEqual(metadata["job"], report["job"])
                self.assertEqual(metadata["parameters_sha256"], report["parameters_sha256"])
                self.assertEqual(told["tensors"], sum(dtype == "F32" for dtype, _, _ in tensors.values()))
                self.assertTrue(all(map(math.isfinite, weights_file.floats(tensors["linear5.weight"
                                        if model == "cnn_batch_norm" else "linear4.weight"]))))
                spec_file = job.run_dir / "spec.yaml"
                for given in ((job.run_dir,), (file, "--spec", spec_file)):
                    self.expect_validation_of(report, *given)
                    self.expect_predictions_of(report, *given)
                self.assertEqual(job.contents(), before, "a look changed something")

    def test_a_killed_run_gives_every_version_of_its_log(self):
        with self.bench.start(self.make_spec("mlp_dropout", "every_step", LONG)) as job:
            with job.held_from_step(3):
                self.assertIn("in use by process", self.refusal("export", job.run_dir))
                job.kill_everything()
            self.run_was_killed = True
            before = job.contents()
            newest = self.export(job.run_dir, "killed.safetensors")[1]["step"]
            self.assertGreaterEqual(newest, 3)
            _, told = self.export(job.run_dir, "earlier.safetensors", "--step", 2)
            self.assertEqual(told["step"], 2)
            said = self.refusal("export", job.run_dir, "--step", newest + 1)
            self.assertIn(f"does not have step {newest + 1} on disk; it has 0 to {newest}", said)
            self.assertEqual(job.contents(), before, "a look changed something")

    def test_nothing_on_disk_is_an_error_that_says_what_to_do(self):
        with self.bench.start(self.make_spec("mlp_dropout", "off")) as job:
            job.expect_complete()
            for verb in (("export",), ("evaluate",), ("predict", "--input", self.validation["records"])):
                self.assertIn("durability.log is off", self.refusal(verb[0], job.run_dir, *verb[1:]))


class init_from(weights_case):
    def trained(self, spec):
        """Weights of a run."""
        with self.bench.start(spec) as job:
            job.expect_complete()
            return self.export(job.run_dir, "first.safetensors")[0]

    def test_training_starts_from_the_file_on_any_number_of_shards(self):
        file = self.trained(self.make_spec("cnn_batch_norm", "snapshots"))
        digests = set()
        for ps_shards in (1, 3):
            spec = self.make_spec("cnn_batch_norm", "every_step")
            spec["train"]["init_from"] = file.name  # beside the job file
            spec["cluster"]["ps_shards"] = ps_shards
            with self.bench.start(spec) as job:
                digests.add(job.expect_complete()["parameters_sha256"])
                start, _ = self.export(job.run_dir, "start.safetensors", "--step", 0)
        self.assertEqual(len(digests), 1)
        before, after = weights_file.read(file)[1], weights_file.read(start)[1]
        after.pop("batch_norm1.num_batches_tracked")
        before.pop("batch_norm1.num_batches_tracked")
        self.assertEqual(after, before)

    def test_version_0_comes_from_the_file_again_whatever_dies(self):
        spec = self.make_spec("mlp_dropout", "snapshots", LONG)
        spec["train"]["init_from"] = str(self.trained(self.make_spec("mlp_dropout", "snapshots")))
        reference = self.undisturbed(spec)
        with self.bench.start(spec) as job:
            job.wait_for(lambda status: len(status["roles"]) > 1, "it has begun to start roles")
            job.kill_everything()
            job.resume()
            self.assertEqual(job.expect_complete(may_redo=True)["parameters_sha256"], reference["parameters_sha256"])

    def test_another_file_is_refused_on_resume_and_the_same_may_have_moved(self):
        spec = self.make_spec("mlp_dropout", "every_step", LONG)
        file = self.trained(self.make_spec("mlp_dropout", "every_step"))
        spec["train"]["init_from"] = str(file)
        with self.bench.start(spec) as job:
            job.kill_everything_at_step(2)
            moved = file.rename(file.with_name("moved.safetensors"))
            _, tensors = weights_file.read(moved)
            weights_file.write(file, tensors, {"another": "file"})
            code, _, said = job.ask("resume")
            self.assertEqual(code, BAD_USAGE, said)
            self.assertIn("train.init_sha256 says", said)
            job.resume([f"train.init_from={moved}"])
            job.expect_complete(may_redo=True)

    def test_weights_that_do_not_fit_are_refused_by_name(self):
        zeroes = bytes(4 * 64)
        file = weights_file.write(self.bench.folder / "w.safetensors",
                                  {"linear1.bias": ("F32", [64], zeroes), "head.bias": ("F32", [64], zeroes)})
        spec = self.make_spec("mlp_dropout", "off")
        spec["train"]["init_from"] = str(file)
        job_file = small_data.write_spec(self.bench.folder / "job.yaml", spec)
        said = self.refusal("train", job_file, "--run-dir", self.bench.folder / "none")
        for name in ("'linear1.weight' [64, 144] is not in the file", "'head.bias' [64] is not in the model"):
            self.assertIn(name, said)
        self.assertNotIn("linear1.bias", said)
        self.assertFalse((self.bench.folder / "none").exists())
        self.answer("validate", job_file, "--set", "train.init_strict=false")

    def test_tensors_that_the_model_does_not_use_may_be_of_any_dtype(self):
        zeroes = bytes(4 * 64)
        job_file = small_data.write_spec(self.bench.folder / "job.yaml", self.make_spec("mlp_dropout", "off"))
        for dtype, shape, size in (("C64", [2], 16), ("F8_E8M0", [3], 3), ("F4", [2, 3], 3), ("F6_E2M3", [4], 3),
                                   ("F8_E4M3FNUZ", [1], 1), ("U7_OF_2030", [5], 9)):
            with self.subTest(dtype=dtype):
                weights_file.write(self.bench.folder / "w.safetensors", {"linear1.bias": ("F32", [64], zeroes),
                                                                         "other": (dtype, shape, bytes(size))})
                options = ("--set", "train.init_from=w.safetensors", "--set", "train.init_strict=false")
                self.answer("validate", job_file, *options)

    def test_a_file_with_weights_that_are_no_numbers_is_not_evaluated(self):
        spec = self.make_spec("mlp_dropout", "every_step")
        file = self.trained(spec)
        job_file = small_data.write_spec(self.bench.folder / "job.yaml", spec)
        _, tensors = weights_file.read(file)
        dtype, shape, content = tensors["linear4.bias"]
        tensors["linear4.bias"] = dtype, shape, content[:8] + b"\x00\x00\xc0\x7f" + content[12:]
        weights_file.write(file, tensors)
        for verb in (("evaluate",), ("predict", "--input", self.validation["records"])):
            said = self.refusal(verb[0], file, "--spec", job_file, *verb[1:])
            self.assertIn(f"{file}: tensor 'linear4.bias' has nan at [2]", said)


if __name__ == "__main__":
    main()
