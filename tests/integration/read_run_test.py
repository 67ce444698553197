"""A run that is over, as others read it: without any right to write, as a copy, and on other data than it was trained for."""

import json
import os
import pathlib
import shutil
import subprocess

import small_data
from bench_case import bench_case, main

NOBODY = 65534
BAD_USAGE = 2
RECORDS = 403
SPLIT_OFF = 81  # a fifth, rounded


class read_run(bench_case):
    records = RECORDS

    def setUp(self):
        super().setUp()
        spec = self.spec("mlp_dropout", epochs=2)
        spec["data"]["validation"] = {"split": 0.2}
        spec["durability"] = {"log": "every_step", "max_recovery": "86400s"}  # one snapshot, at the end
        with self.bench.start(spec) as job:
            self.report = job.expect_complete()
        self.run_dir = job.run_dir
        self.before = job.contents()
        self.contents = job.contents

    def dlrun(self, *arguments, cwd=None):
        """As somebody whom permissions stop: nobody, where we are root. His files go where all may write."""
        become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        return subprocess.run([*become, self.bench.program, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              cwd=cwd or self.own_folder(), stdin=subprocess.DEVNULL)

    def own_folder(self):
        folder = self.bench.folder / "own"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def let_read(self, folder):
        """All may read it, and nobody may write."""
        self.bench.folder.chmod(0o755)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        self.addCleanup(self.let_write, folder)

    def let_write(self, folder):
        folder.chmod(0o755)
        for path in folder.rglob("*"):
            path.chmod(0o755)

    def expect_readable(self, folder):
        """By all three verbs, with the figures of the report."""
        exported = self.dlrun("export", folder, "--output", "weights", "--json")
        self.assertEqual((exported.returncode, exported.stderr), (0, ""), exported)
        self.assertEqual(json.loads(exported.stdout)["parameters_sha256"], self.report["parameters_sha256"])
        self.assertEqual(self.evaluate(folder)["loss"], self.report["validation"]["loss"])
        predicted = self.dlrun("predict", folder, "--input", self.data["records"])
        self.assertEqual((predicted.returncode, predicted.stderr), (0, ""), predicted)
        self.assertEqual(len(predicted.stdout.splitlines()), 1 + RECORDS)

    def evaluate(self, folder, *overrides, warning=""):
        done = self.dlrun("evaluate", folder, "--json", *(word for one in overrides for word in ("--set", one)))
        self.assertEqual(done.returncode, 0, done)
        self.assertTrue(done.stderr.startswith(warning) if warning else not done.stderr, done)
        return json.loads(done.stdout)

    def refusal(self, folder):
        done = self.dlrun("evaluate", folder)
        self.assertEqual((done.returncode, done.stdout), (BAD_USAGE, ""), done)
        return done.stderr

    def test_somebody_elses_run_is_read_and_nothing_is_changed(self):
        self.let_read(self.run_dir)
        self.expect_readable(self.run_dir)
        self.assertEqual(self.contents(), self.before)

    def test_a_run_on_a_read_only_disk_is_read(self):
        if os.geteuid() != 0:
            self.skipTest("mounts, so it needs root")
        self.let_read(self.run_dir)
        place = self.bench.folder / "mounted"
        place.mkdir()
        subprocess.run(["mount", "--bind", self.run_dir, place], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
            self.expect_readable(place)
            root = subprocess.run([self.bench.program, "export", place, "--output", self.own_folder() / "by-root"],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((root.returncode, root.stderr), (0, ""), root)
        finally:
            subprocess.run(["umount", place], check=True)

    def test_a_copy_is_read_with_its_locks_and_without(self):
        copy = self.bench.folder / "copy"
        subprocess.run(["cp", "-a", self.run_dir, copy], check=True)
        for left_out in ((), ("run.lock",), ("ps_shard-0/log/LOCK",)):
            for name in left_out:
                (copy / name).unlink()
            self.let_read(copy)
            self.expect_readable(copy)
            self.let_write(copy)

    def test_without_its_snapshot_the_version_is_made_from_the_log_and_that_is_said(self):
        for snapshot in self.run_dir.glob("ps_shard-*/snapshots/*.snap"):
            snapshot.unlink()
        self.let_read(self.run_dir)
        done = self.dlrun("export", self.run_dir, "--output", "weights", "--json")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(json.loads(done.stdout)["parameters_sha256"], self.report["parameters_sha256"])
        self.assertIn("there is no such file", done.stderr)

    def test_what_may_not_be_read_is_said_truthfully(self):
        self.let_read(self.run_dir)
        self.run_dir.chmod(0o444)  # to be listed, not to be entered
        self.assertIn("Permission denied", self.refusal(self.run_dir))
        self.run_dir.chmod(0o555)
        (self.run_dir / "run.lock").chmod(0)
        self.assertIn("run.lock': Permission denied", self.refusal(self.run_dir))
        (self.run_dir / "run.lock").chmod(0o444)
        (self.run_dir / "ps_shard-0").chmod(0)
        done = self.dlrun("evaluate", self.run_dir)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ermission denied", done.stderr)
        self.assertNotIn("held by", done.stderr)

    def test_other_metrics_than_those_of_the_training(self):
        self.let_read(self.run_dir)
        told = self.evaluate(self.run_dir, "model.metrics=[accuracy, recall]")
        self.assertEqual(told["accuracy"], self.report["validation"]["accuracy"])
        self.assertIn("recall", told)

    def test_records_that_were_trained_on_are_counted(self):
        self.let_read(self.run_dir)
        own = self.evaluate(self.run_dir)
        self.assertEqual((own["samples"], own["records_trained_on"]), (SPLIT_OFF, 0))
        trained = {name: f"data.validation={json.dumps({**self.data, **paths})}" for name, paths in (
            ("file", {}), ("copy", {"records": str(shutil.copy(self.data["records"], self.own_folder()))}))}
        for override in trained.values():
            told = self.evaluate(self.run_dir, override, warning="warning: ")
            self.assertEqual((told["samples"], told["records_trained_on"]), (RECORDS, RECORDS - SPLIT_OFF))
        for override in ("data.validation.split=0.5", "train.seed=99"):
            told = self.evaluate(self.run_dir, override, warning="warning: ")
            self.assertGreater(told["records_trained_on"], 0)
            self.assertLessEqual(told["records_trained_on"], told["samples"])
        self.dlrun("export", self.run_dir, "--output", "w.safetensors")
        done = self.dlrun("evaluate", self.own_folder() / "w.safetensors", "--spec", self.run_dir / "spec.yaml", "--json",
                          "--set", trained["file"])
        self.assertEqual(json.loads(done.stdout)["records_trained_on"], RECORDS - SPLIT_OFF, done)

    def warned(self, warnings, *overrides):
        """What is told as JSON, which has the lines of stderr; each of these must be in one of them."""
        done = self.dlrun("evaluate", self.run_dir, "--json", *(word for one in overrides for word in ("--set", one)))
        self.assertEqual(done.returncode, 0, done)
        told = json.loads(done.stdout)
        self.assertEqual(done.stderr.splitlines(), [f"warning: {one}" for one in told["warnings"]])
        self.assertEqual(len(told["warnings"]), len(warnings), told)
        for one, words in zip(told["warnings"], warnings):
            self.assertIn(words, one)
        return told

    def reversed_records(self):
        """The same records in the other order, in the same file."""
        file = pathlib.Path(self.data["records"])
        content = file.read_bytes()
        each, head = small_data.SIDE ** 2, len(content) - RECORDS * small_data.SIDE ** 2
        records = [content[at:at + each] for at in range(head, len(content), each)]
        file.write_bytes(content[:head] + b"".join(records[::-1]))

    def test_training_data_that_was_changed_is_told_and_never_counted(self):
        self.let_read(self.run_dir)
        self.assertEqual(self.warned([])["records_trained_on"], 0)
        other = small_data.write_images(self.bench.folder, "other", 50, seed=2)
        override = f"data.validation={json.dumps(other)}"
        cannot = "cannot be told: data.train is not what the run was trained on: the records of data.train"
        self.assertEqual(self.warned([], override)["records_trained_on"], 0)
        self.reversed_records()
        told = self.warned(["they are split off from data.train", cannot])
        self.assertEqual((told["samples"], told["records_trained_on"]), (SPLIT_OFF, None))
        self.assertIsNone(self.warned([cannot], override)["records_trained_on"])
        self.reversed_records()
        self.assertEqual(self.warned([])["records_trained_on"], 0)
        labels = pathlib.Path(self.data["labels"])
        content = labels.read_bytes()
        labels.write_bytes(content[:-1] + bytes([(content[-1] + 1) % small_data.CLASSES]))
        self.assertIsNone(self.warned(["split off", "the targets of data.train"])["records_trained_on"])

    def test_without_its_training_data_a_run_is_evaluated_on_other_data(self):
        self.let_read(self.run_dir)
        other = small_data.write_images(self.bench.folder, "other", 50, seed=2)
        override = f"data.validation={json.dumps(other)}"
        before = self.warned([], override)
        pathlib.Path(self.data["records"]).unlink()
        told = self.warned(["cannot be told: cannot open "], override)
        self.assertEqual((told["loss"], told["samples"], told["records_trained_on"]), (before["loss"], 50, None))
        self.assertIn("cannot open", self.refusal(self.run_dir), "its own validation data was split off from it")


class read_run_with_validation_files(bench_case):
    """Its own validation data has files of its own."""

    records = RECORDS

    def evaluate(self):
        done = subprocess.run([self.bench.program, "evaluate", self.run_dir, "--json"], capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout)

    def test_which_data_was_changed_is_told(self):
        spec = self.spec("mlp_dropout")
        spec["data"]["validation"] = small_data.write_images(self.bench.folder, "validation", 60, seed=2)
        with self.bench.start(spec) as job:
            job.expect_complete()
        self.run_dir = job.run_dir
        told = self.evaluate()
        self.assertEqual((told["records_trained_on"], told["warnings"]), (0, []))
        small_data.write_images(self.bench.folder, "validation", 50, seed=2)
        told = self.evaluate()
        self.assertEqual((told["samples"], told["records_trained_on"]), (50, 0), "the training data is what it was")
        (changed,) = told["warnings"]
        self.assertIn("the records of data.validation are not those that the run evaluated", changed)
        self.assertIn("50 of them, and the run has 60", changed)
        small_data.write_images(self.bench.folder, "train", RECORDS - 100)
        told = self.evaluate()
        self.assertIsNone(told["records_trained_on"])
        self.assertIn(f"{RECORDS - 100} of them, and the run has {RECORDS}", told["warnings"][1])


if __name__ == "__main__":
    main()
