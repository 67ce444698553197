"""`dlrun resume` goes on with the job that was trained, or not at all: other data, an edited or damaged specification."""

import os
import pathlib
import shutil

from bench_case import main
from changed_runs import changed_runs, kept_specs, set_options


class the_same_job(changed_runs):
    def setUp(self):
        super().setUp()
        spec = self.durable_spec("every_step")
        spec["data"]["validation"] = dict(self.data, records=self.copy_of("records"), labels=self.copy_of("labels"))
        self.reference = self.undisturbed(spec)
        self.job = self.killed_run(spec, self.steps_of(spec) // 3)

    def copy_of(self, key, suffix="-other"):
        copy = self.data[key] + suffix
        shutil.copy(self.data[key], copy)
        return copy

    def edit(self, old, new, name="spec.yaml"):
        file = self.job.run_dir / name
        self.assertIn(old, file.read_text())
        file.write_text(file.read_text().replace(old, new, 1))

    def expect_same_end(self, *options):
        """It goes on, and nothing is otherwise."""
        self.job.resume(options=options)
        self.assertEqual(self.job.expect_complete(may_redo=True)["parameters_sha256"], self.reference["parameters_sha256"])


class other_data(the_same_job):
    def test_of_any_kind_is_told_by_its_file(self):
        labels = pathlib.Path(self.data["labels"])
        whole, about = labels.read_bytes(), labels.stat()

        def replace(content):
            labels.write_bytes(content)
            os.utime(labels, ns=(about.st_atime_ns, about.st_mtime_ns))

        replace(whole[:-1] + bytes([(whole[-1] + 1) % 10]))  # of the same size and time
        self.expect_refused(self.job, [], "not what the run was trained on", f"the targets of data.train ('{labels}')",
                            f"to {self.records - 1}", "--set data.train.records")
        replace(whole)
        images = pathlib.Path(self.data["records"])
        content, head = images.read_bytes(), 16
        images.write_bytes(content[:head] + content[head + 144:head + 288] + content[head:head + 144] + content[head + 288:])
        self.expect_refused(self.job, [], f"the records of data.train ('{images}')", "records 0 to")  # two are exchanged
        images.write_bytes(content)
        other = pathlib.Path(self.data["labels"] + "-other")
        other.write_bytes(whole[:-1] + bytes([(whole[-1] + 1) % 10]))
        self.expect_refused(self.job, [], f"the targets of data.validation ('{other}')")
        other.write_bytes(whole)
        self.expect_same_end()

    def test_the_same_elsewhere_is_the_same(self):
        moved = self.copy_of("records", "-moved")
        os.unlink(self.data["records"])
        self.expect_refused(self.job, [], self.data["records"])
        os.symlink(moved, self.data["records"])
        self.expect_same_end()

    def test_the_same_under_another_name_can_be_named(self):
        os.rename(self.data["records"], self.data["records"] + "-moved")
        self.expect_same_end("--set", f"data.train.records={self.data['records']}-moved")
        self.assertIn(f"{self.data['records']}-moved", kept_specs(self.job)["spec.yaml"])
        self.assertEqual(self.job.ask("resume")[0], 0)

    def test_another_content_cannot_be_named(self):
        other = self.copy_of("labels", "-mine")
        content = bytearray(pathlib.Path(other).read_bytes())
        content[-1] = (content[-1] + 1) % 10
        pathlib.Path(other).write_bytes(content)
        self.expect_refused(self.job, set_options(f"data.train.labels={other}"), "not what the run was trained on", other)


class an_edited_specification(the_same_job):
    def test_is_told_key_by_key_and_goes_on_as_trained_when_told_to(self):
        for old, new, told in (("seed: 7", "seed: 8", "train.seed: 7 was trained with, spec.yaml now says 8"),
                               ("relu: {}", "tanh: {}", "model.layers[2]: relu was trained with, spec.yaml now says tanh"),
                               ("epochs: 36", "epochs: 1", "train.epochs: 36 was trained with, spec.yaml now says 1"),
                               ("lr: 0.02", "lr: 0.2", "train.optimizer.sgd.lr: 0.02 was trained with, spec.yaml now says 0.2")):
            with self.subTest(new):
                self.edit(old, new)
                self.expect_refused(self.job, [], told, "--as-trained", "--set")
                self.edit(new, old)
        self.edit("seed: 7", "seed: 8")
        self.expect_same_end("--as-trained")
        self.assertIn("seed: 7", kept_specs(self.job)["spec.yaml"])
        self.assertIn("seed: 8", (self.job.run_dir / "spec.yaml.edited").read_text())

    def test_may_have_other_keys_that_change_no_bit(self):
        self.edit("workers: 2", "workers: 1")
        self.expect_same_end()
        self.assertIn("workers: 1", kept_specs(self.job)["spec.yaml"])

    def test_that_is_damaged_is_told_and_one_that_is_gone_is_written_again(self):
        file = self.job.run_dir / "spec.yaml"
        whole = file.read_bytes()
        for content in (b"", whole[:len(whole) // 2], b"\xff\xfe" + whole, b"model: {"):
            with self.subTest(content[:20]):
                file.write_bytes(content)
                self.expect_refused(self.job, [], "spec.yaml", "not what the run was trained with", "--as-trained")
        file.unlink()
        self.expect_same_end()
        self.assertEqual(file.read_bytes(), whole)

    def test_a_revision_that_never_was_is_told(self):
        shutil.copy(self.job.run_dir / "spec.yaml", self.job.run_dir / "spec.1.yaml")
        self.expect_refused(self.job, [], "spec.1.yaml is not of this run", "--as-trained")
        self.expect_same_end("--as-trained")
        self.assertEqual(sorted(kept_specs(self.job)), ["spec.yaml"])

    def test_is_not_taken_for_the_model_that_was_trained(self):
        code, output, complaint = self.job.ask("evaluate")
        self.assertEqual(code, 0, complaint)
        self.assertRegex(complaint, r"\Awarning: the model was trained on [^\n]*\n\Z")
        self.edit("relu: {}", "tanh: {}")
        code, edited, complaint = self.job.ask("evaluate")
        self.assertEqual((code, edited), (0, output), complaint)
        self.assertIn("dlrun: warning: ", complaint)
        self.assertIn("model.layers[2]: relu was trained with, spec.yaml now says tanh", complaint)

    def test_also_of_a_completed_run(self):
        self.expect_same_end()
        self.edit("epochs: 36", "epochs: 72")
        code, _, complaint = self.job.ask("resume")
        self.assertEqual(code, 2, complaint)
        self.assertIn("train.epochs: 36 was trained with, spec.yaml now says 72", complaint)


class a_run_without_a_record(the_same_job):
    """As dlrun 0.1 left them."""

    def test_goes_on_only_when_told_to(self):
        (self.job.run_dir / "run.record").unlink()
        self.expect_refused(self.job, [], "has no run.record", "--unrecorded")
        self.expect_same_end("--unrecorded")
        self.assertEqual(self.job.ask("resume")[0], 0)

    def test_and_one_with_a_damaged_record_not_before_that_is_removed(self):
        record = self.job.run_dir / "run.record"
        content = bytearray(record.read_bytes())
        content[-1] ^= 1
        record.write_bytes(content)
        for options in ([], ["--unrecorded"], ["--as-trained"]):
            self.expect_refused(self.job, options, "run.record' is not what dlrun wrote", "remove it", "--unrecorded")

    def test_one_with_a_record_does_not_take_the_option(self):
        self.expect_refused(self.job, ["--unrecorded"], "has a run.record")


if __name__ == "__main__":
    main()
