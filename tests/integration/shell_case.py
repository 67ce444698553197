"""A small job in a folder, for commands of a shell."""

import os
import pathlib
import subprocess

import small_data
from bench_case import bench_case

PATIENCE_S = 60


def table(path, records):
    path.write_text("a,b,y\n" + "".join(f"{(7 * i % 13) / 13},{(5 * i % 11) / 11},{i % 2}\n" for i in range(records)))


def table_spec(folder, **train):
    """A job that is over in a moment."""
    table(folder / "t.csv", 60)
    return {"name": "small", "model": {"input": [2], "layers": [{"linear": {"out_features": 2}}]},
            "data": {"train": {"format": "csv", "records": "t.csv", "csv": {"target": "y"}},
                     "validation": {"split": 0.2}},
            "train": {"epochs": 2, "microbatch_size": 4, "microbatches_per_step": 1,
                      "optimizer": {"sgd": {"lr": 0.01}}, **train},
            "cluster": {"workers": 1, "ps_shards": 1}, "durability": {"log": "every_step"}}


class shell_case(bench_case):
    """A folder with a job in it; `run` has one that is trained."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.bench.folder)
        small_data.write_spec(self.folder / "job.yaml", table_spec(self.folder))

    def dlrun(self, *words, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder,
                   "timeout": PATIENCE_S, **options}
        return subprocess.run([os.path.realpath(self.program), *map(str, words)], **options)

    def shell(self, command, **options):
        """`command` of a shell in which $DLRUN is the program."""
        return subprocess.run(["/bin/bash", "-c", command], cwd=self.folder, capture_output=True, timeout=PATIENCE_S,
                              env={**os.environ, "DLRUN": os.path.realpath(self.program)}, **options)

    def trained(self):
        if not (self.folder / "run").exists():
            answer = self.dlrun("train", "job.yaml", "--run-dir", "run")
            self.assertEqual(answer.returncode, 0, answer)
