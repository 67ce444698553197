"""Wrong input: exit 2, one message that names the thing and the place, and nothing left behind."""

import gzip
import pathlib
import struct
import subprocess

import small_data
from bench_case import bench_case, main

BAD_USAGE = 2


class bad_input(bench_case):
    records = 203

    def setUp(self):
        super().setUp()
        self.folder = self.bench.folder
        self.run_dir = self.folder / "run"

    def dlrun(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              cwd=self.folder, stdin=subprocess.DEVNULL)

    def expect_complaint(self, answer, *words):
        """Exit 2, nothing but a message of few lines with all the words."""
        said = f"exit {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
        self.assertEqual(answer.returncode, BAD_USAGE, said)
        self.assertEqual(answer.stdout, "", said)
        self.assertEqual(answer.stderr.count("dlrun: "), 1, said)
        self.assertLess(len(answer.stderr.splitlines()), 4, said)
        self.assertNotRegex(answer.stderr, "what\\(\\)|terminate called|Traceback|Sanitizer|check failed")
        for word in words:
            self.assertIn(word, answer.stderr)

    def expect_refused(self, spec, *words, overrides=()):
        """Neither `validate` nor `train` takes the job, for the same reason."""
        file = self.folder / "job.yaml"
        if isinstance(spec, str):
            file.write_text(spec)
        else:
            small_data.write_spec(file, spec)
        options = [part for one in overrides for part in ("--set", one)]
        before = sorted(self.folder.iterdir())
        trained = self.dlrun("train", file, "--run-dir", self.run_dir, *options)
        self.expect_complaint(trained, *words)
        if not overrides:
            self.expect_complaint(self.dlrun("validate", file), *words)
        self.assertEqual(sorted(self.folder.iterdir()), before, "something was left behind")

    # ---- the specification

    def test_an_unknown_key_with_its_line_and_the_nearest_key(self):
        self.expect_refused("name: x\ntrain:\n  epoch: 3\n", "job.yaml:3", "epoch", "epochs")

    def test_a_misspelt_layer_with_the_nearest_one(self):
        spec = self.spec()
        spec["model"]["layers"][1] = {"liner": {"out_features": 10}}
        self.expect_refused(spec, "job.yaml:", "liner", "linear")

    def test_an_unknown_path_of_an_override(self):
        self.expect_refused(self.spec(), "train.epoks", "epochs", overrides=["train.epoks=3"])

    def test_an_override_without_a_value(self):
        self.expect_refused(self.spec(), "train.epochs", overrides=["train.epochs"])

    def test_text_where_a_number_belongs(self):
        self.expect_refused(self.spec(), "train.epochs", "many", overrides=["train.epochs=many"])

    def test_zero_and_negative_sizes(self):
        for override in ("train.epochs=0", "train.microbatch_size=0", "train.microbatches_per_step=-4", "cluster.workers=0",
                         "cluster.ps_shards=-1", "cluster.threads_per_worker=0", "train.optimizer.sgd.lr=-1"):
            with self.subTest(override):
                path, _, value = override.partition("=")
                self.expect_refused(self.spec(), path, value, overrides=[override])

    def test_a_layer_of_no_features(self):
        spec = self.spec()
        spec["model"]["layers"][1] = {"linear": {"out_features": 0}}
        self.expect_refused(spec, "job.yaml:", "out_features")

    def test_no_yaml_at_all(self):
        self.expect_refused("name: [x\n", "job.yaml")
        self.expect_refused("", "job.yaml")

    def test_a_missing_job_file(self):
        self.expect_complaint(self.dlrun("train", "nowhere.yaml"), "nowhere.yaml")

    # ---- shapes

    def test_shapes_that_do_not_fit_name_the_layer(self):
        spec = self.spec("cnn_batch_norm")
        spec["model"]["layers"].remove("flatten")
        self.expect_refused(spec, "linear")
        spec = self.spec("cnn_batch_norm")
        spec["model"]["layers"].insert(3, {"max_pool2d": {"kernel_size": 40}})
        self.expect_refused(spec, "max_pool2d", "12")

    def test_a_model_for_other_records(self):
        spec = self.spec()
        spec["model"]["input"] = [1, 28, 28]
        self.expect_refused(spec, "train-images", "28", "12")

    def test_more_classes_in_the_data_than_outputs(self):
        spec = self.spec()
        spec["model"]["layers"][-1] = {"linear": {"out_features": 5}}
        self.expect_refused(spec, "train-labels", "5")

    # ---- the data

    def test_a_missing_data_file(self):
        spec = self.spec()
        spec["data"]["train"]["records"] = str(self.folder / "nowhere")
        self.expect_refused(spec, str(self.folder / "nowhere"))

    def test_a_folder_in_place_of_a_data_file(self):
        spec = self.spec()
        spec["data"]["train"]["records"] = str(self.folder)
        self.expect_refused(spec, str(self.folder))

    def test_a_truncated_gzip_file(self):
        packed = gzip.compress(pathlib.Path(self.data["records"]).read_bytes())
        file = self.folder / "half.gz"
        file.write_bytes(packed[:len(packed) // 2])
        spec = self.spec()
        spec["data"]["train"]["records"] = str(file)
        self.expect_refused(spec, "half.gz")

    def test_a_truncated_plain_file(self):
        file = pathlib.Path(self.data["records"])
        file.write_bytes(file.read_bytes()[:-1])
        self.expect_refused(self.spec(), "train-images")

    def test_a_file_of_something_else(self):
        pathlib.Path(self.data["records"]).write_bytes(b"no images" * 100)
        self.expect_refused(self.spec(), "train-images")

    def test_a_header_that_promises_more_than_memory_holds(self):
        pathlib.Path(self.data["records"]).write_bytes(struct.pack(">4I", 0x803, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF))
        self.expect_refused(self.spec(), "train-images")

    def test_more_labels_than_records(self):
        file = pathlib.Path(self.data["labels"])
        small_data.write_idx(file, [self.records + 1], bytes(self.records + 1))
        self.expect_refused(self.spec(), str(self.records), str(self.records + 1))

    def test_a_label_out_of_range(self):
        file = pathlib.Path(self.data["labels"])
        small_data.write_idx(file, [self.records], bytes(self.records - 1) + b"\x0a")
        self.expect_refused(self.spec(), "train-labels", "10", str(self.records - 1))

    def table_spec(self, **keys):
        """A job on a CSV file of two numbers and a class, with these keys of data.train."""
        spec = self.spec()
        spec["model"] = {"input": [2], "layers": [{"linear": {"out_features": 2}}]}
        spec["data"]["train"] = {"format": "csv", "records": str(self.folder / "t.csv"), "csv": {"target": "class"}, **keys}
        return spec

    def test_a_bad_cell_and_a_changed_column_count_with_line_and_column(self):
        for lines, words in ((["1,2,0", "1,ten,1"], ["line 3", "column y", "ten"]),
                             (["1,2,0", "1,2"], ["line 3", "2 columns", "3"]),
                             (["1,2,0", "1,2,7"], ["record 1", "label 7"])):
            with self.subTest(lines):
                (self.folder / "t.csv").write_text("\n".join(["x,y,class", *lines, ""]))
                self.expect_refused(self.table_spec(), "t.csv", *words)

    def test_an_empty_table(self):
        (self.folder / "t.csv").write_text("x,y,class\n")
        self.expect_refused(self.table_spec(), "t.csv", "no records")

    def test_truncated_files_of_the_other_formats(self):
        pictures = self.folder / "pictures" / "cat"
        pictures.mkdir(parents=True)
        (pictures / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
        (self.folder / "x.npy").write_bytes(b"\x93NUMPY\x01\0\x76\0{'descr'")
        (self.folder / "r.tfrecord").write_bytes(bytes(11))
        for keys, name in (({"format": "image_folder", "records": "pictures"}, "a.png"),
                           ({"format": "npy", "records": "x.npy", "labels": "x.npy"}, "x.npy"),
                           ({"format": "tfrecord", "records": "r.tfrecord", "tfrecord": {"features": "x", "target": "y"}},
                            "r.tfrecord")):
            with self.subTest(keys["format"]):
                spec = self.spec()
                spec["data"]["train"] = keys
                self.expect_refused(spec, name)

    def test_more_data_than_memory_may_be_taken(self):
        (self.folder / "t.csv").write_text("x,y,class\n" + "1,2,0\n" * 1000)
        spec = self.table_spec()
        spec["data"]["memory_limit"] = "4kB"
        self.expect_refused(spec, "t.csv", "data.memory_limit")

    def test_an_unknown_format_and_keys_of_another_one(self):
        self.expect_refused(self.table_spec(format="cvs"), "data.train")
        self.expect_refused(self.table_spec(labels="y"), "job.yaml:", "data.train.labels", "leave this out")

    # ---- folders

    def test_a_run_folder_that_is_not_empty(self):
        self.run_dir.mkdir()
        (self.run_dir / "precious").write_text("mine")
        file = small_data.write_spec(self.folder / "job.yaml", self.spec())
        self.expect_complaint(self.dlrun("train", file, "--run-dir", self.run_dir), str(self.run_dir), "--run-dir")
        self.assertEqual((self.run_dir / "precious").read_text(), "mine")
        self.assertEqual(len(list(self.run_dir.iterdir())), 1)

    def test_a_run_folder_that_is_a_file(self):
        self.run_dir.write_text("mine")
        file = small_data.write_spec(self.folder / "job.yaml", self.spec())
        self.expect_complaint(self.dlrun("train", file, "--run-dir", self.run_dir), str(self.run_dir))
        self.assertEqual(self.run_dir.read_text(), "mine")

    def test_status_and_stop_of_what_is_no_run_folder(self):
        for verb in ("status", "stop"):
            for folder in (self.folder, self.folder / "nowhere"):
                with self.subTest(verb=verb, folder=folder.name):
                    self.expect_complaint(self.dlrun(verb, folder), str(folder))

    # ---- the command line

    def test_an_unknown_verb_a_missing_argument_and_an_unknown_option(self):
        for words in (("trian", "job.yaml"), ("train",), (), ("status", self.folder, "--jsn")):
            with self.subTest(words):
                answer = self.dlrun(*words)
                self.assertEqual(answer.returncode, BAD_USAGE, answer)
                self.assertNotEqual(answer.stderr + answer.stdout, "")


if __name__ == "__main__":
    main()
