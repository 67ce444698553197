"""Tables: rows never shift between training, evaluation and prediction, and as many columns as are read can be used."""

import csv
import io
import json
import subprocess

from bench_case import bench_case, main

COLUMNS = 20_000  # beyond the values that a job file of a user's own may have


class tables(bench_case):
    records = 8  # of images, which are not used

    def table_spec(self, inputs, columns=(), validation=None):
        spec = self.spec(workers=1, ps_shards=1)
        table = {"target": "y", **({"columns": list(columns)} if columns else {})}
        spec["data"] = {"train": {"format": "csv", "records": "train.csv", "csv": table}}
        if validation:
            spec["data"]["validation"] = {"records": validation}
        spec["model"] = {"input": [inputs], "layers": [{"linear": {"out_features": 2}}]}
        spec["train"].update(microbatch_size=2, microbatches_per_step=1)
        spec["durability"] = {"log": "every_step"}
        return spec

    def write(self, name, text):
        (self.bench.folder / name).write_text(text)
        return name

    def dlrun(self, *arguments):
        return subprocess.run([self.bench.program, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              cwd=self.bench.folder, stdin=subprocess.DEVNULL)

    def answer(self, *arguments):
        """What it prints; it must not complain, but that it evaluates what was trained on, which is meant here."""
        done = self.dlrun(*arguments)
        complaints = [line for line in done.stderr.splitlines() if not line.startswith("warning: the model was trained on ")]
        self.assertEqual((done.returncode, complaints), (0, []), done)
        return done.stdout

    def trained(self, spec):
        job = self.enterContext(self.bench.start(spec))
        job.expect_complete()
        return job

    def outputs(self, run_dir, text):
        """The first output of each record that is predicted of this table."""
        rows = csv.DictReader(io.StringIO(self.answer("predict", run_dir, "--input", self.write("new.csv", text))))
        return [row["output0"] for row in rows]

    def test_a_blank_line_of_one_column_is_the_record_that_it_stands_for(self):
        self.write("train.csv", "a,y\n1,0\n\n2,1\n,0\n4,1\n\n")
        job = self.trained(self.table_spec(1, [{"column": "a", "missing": "-1"}]))
        self.assertEqual(job.report()["samples_committed"], 4, "in a table of two columns a blank line is none")
        whole = self.outputs(job.run_dir, "a\n1\n-1\n3\n-1\n")
        self.assertEqual(self.outputs(job.run_dir, "a\n1\n\n3\n\n"), whole)
        self.assertEqual(self.outputs(job.run_dir, "a,y\n1,0\n,0\n\n3,0\n,0\n\n"), whole)

    def test_evaluation_sees_the_rows_that_training_sees(self):
        rows = "a,y\n1,0\n\n,1\n3,0\n\n\n-1,1\n"
        self.write("train.csv", rows)
        self.write("validation.csv", rows)
        job = self.trained(self.table_spec(1, [{"column": "a", "missing": "-1"}], "validation.csv"))
        told = json.loads(self.answer("evaluate", job.run_dir, "--json"))
        self.assertEqual(told["samples"], 4)
        self.assertEqual(told["loss"], job.report()["validation"]["loss"])

    def test_a_wide_table_is_trained_on_exported_evaluated_and_predicted(self):
        names = ",".join(f"c{i}" for i in range(COLUMNS))
        rows = "".join(",".join(str((i * 7 + row) % 10) for i in range(COLUMNS)) + f",{row % 2}\n" for row in range(4))
        self.write("train.csv", f"{names},y\n{rows}")
        job = self.trained(self.table_spec(COLUMNS, validation="train.csv"))
        file = self.bench.folder / "w.safetensors"
        self.answer("export", job.run_dir, "--output", file)
        expected = job.report()["validation"]["loss"]
        for model in ((job.run_dir,), (file, "--spec", job.run_dir / "spec.yaml")):
            self.assertEqual(json.loads(self.answer("evaluate", *model, "--json"))["loss"], expected)
        self.assertEqual(len(self.outputs(job.run_dir, f"{names},y\n{rows}")), 4)

    def test_partial_keys_of_validation_data_are_as_in_training(self):
        """The same table, written with another target name: separator and header are not repeated."""
        self.write("train.csv", "1|0\n2|1\n3|0\n4|1\n")
        spec = self.table_spec(1, validation="train.csv")
        spec["data"]["train"]["csv"] = {"target": "1", "header": False, "delimiter": "bar"}
        spec["data"]["validation"]["csv"] = {"target": "1"}
        job = self.trained(spec)
        self.assertEqual(job.report()["validation"]["samples"], 4)

    def test_evaluation_and_prediction_read_as_the_training_did_or_not_at_all(self):
        self.write("train.csv", "x,z,y\n1,5,b\n2,6,a\n3,7,b\n4,8,a\n")
        columns = [{"column": "x", "standardize": True}, {"column": "z", "standardize": True}]
        job = self.trained(self.table_spec(2, columns, "train.csv"))
        for override, words in {
                "data.validation.csv.classes=[b, a]": ("data.validation.csv.classes[0]", "b here", "a in data.train"),
                "data.validation.csv.columns=[{column: z, standardize: true}, {column: x, standardize: true}]":
                    ("data.validation.csv.columns[0].column", "z here", "x in data.train"),
                "data.validation.csv.columns=[{column: x}, {column: z}]":
                    ("data.validation.csv.columns[0].standardize", "nothing here", "true in data.train"),
                "data.train.csv.classes=[b, a]": ("csv.classes[0]",)}.items():
            for verb in (("evaluate", job.run_dir), ("predict", job.run_dir, "--input", "train.csv")):
                done = self.dlrun(*verb, "--set", override)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                for word in words:
                    self.assertIn(word, done.stderr, done)


if __name__ == "__main__":
    main()
