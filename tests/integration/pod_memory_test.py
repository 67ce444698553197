"""The memory that `dlrun validate --kubernetes` says a pod needs is enough for a job that has all its roles in one, and not twice as
much as it takes."""

import contextlib
import json
import pathlib
import subprocess
import sys
import time

import small_data
from bench_case import bench_case, main
from dlrun_job import running_job
from waiting import POLL_S

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
MIB = 1 << 20
TIMES_MAX = 2.5
PATIENCE_S = 240


def own_bytes(pid):
    """What is charged for a process: its own pages, and its part of those that it shares. Pages of files can be taken away."""
    with contextlib.suppress(OSError):
        fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
        return sum(int(fields[name].split()[0]) for name in ("Pss_Anon", "Pss_Shmem")) * 1024
    return 0


class takes_memory(bench_case):
    def expect_enough(self, job_file, *overrides):
        words = [word for one in overrides for word in ("--set", one)]
        told = subprocess.run([self.program, "validate", str(job_file), "--kubernetes", "--json", *words], capture_output=True, text=True)
        self.assertEqual(told.returncode, 0, told.stderr)
        needs = json.loads(told.stdout)["kubernetes"]["memory"]
        self.assertEqual(needs["bytes"], sum(row["bytes"] for row in needs["rows"]))
        taken = self.peak_of(job_file, words)
        said = f"{taken / MIB:.0f} MiB of {needs['bytes'] / MIB:.0f} MiB\n" + json.dumps(needs["rows"], indent=1)
        print(f"{job_file.stem}: {said}", file=sys.stderr)
        self.assertLessEqual(taken, needs["bytes"], said)
        self.assertLessEqual(needs["bytes"], TIMES_MAX * taken, said)

    def peak_of(self, job_file, words):
        """On one host that is in a list: as on a pod, workers copy the parameters, and connections are in TLS."""
        hosts = self.bench.folder / "hosts.yaml"
        hosts.write_text(json.dumps({"hosts": [{"name": "control", "address": "127.0.0.1"}]}))
        run_dir = self.bench.new_run_dir()
        most, deadline = 0, time.monotonic() + PATIENCE_S
        with running_job(self.program, run_dir, ["train", str(job_file), "--run-dir", str(run_dir), "--hosts", str(hosts), *words],
                         run_dir.with_suffix(".out")) as job:
            while job.root.poll() is None and time.monotonic() < deadline:
                most = max(most, sum(own_bytes(pid) for pid in job.left_processes()))
                time.sleep(POLL_S)  # between two looks
            job.expect_complete()
        return most

    def test_of_the_table(self):
        self.expect_enough(EXAMPLES / "tabular/iris.yaml", "train.epochs=2000")

    def test_of_the_perceptron(self):
        self.expect_enough(EXAMPLES / "fashion_mnist/mlp.yaml", "train.epochs=2")

    def test_of_the_perceptron_with_snapshots(self):
        self.expect_enough(EXAMPLES / "fashion_mnist/mlp.yaml", "train.epochs=2", "durability.log=snapshots",
                           "train.optimizer={adam: {lr: 0.001}}")

    def test_of_the_convolutional_network(self):
        self.expect_enough(EXAMPLES / "fashion_mnist/cnn.yaml", "cluster.workers=3")

    def test_of_wide_layers(self):
        """Where parameters are most of it."""
        spec = self.spec()
        spec["model"]["layers"] = ["flatten", *({"linear": {"out_features": 3000}}, "relu") * 2, {"linear": {"out_features": 10}}]
        self.expect_enough(small_data.write_spec(self.bench.folder / "wide.yaml", spec))


if __name__ == "__main__":
    main()
