"""Jobs with records that end whoever computes them, by the layer of poison_program.cpp."""

import contextlib
import os
import random
import struct

import small_data
from dlrun_job import expect, option

WIDTH = 8
CLASSES = 4
KINDS = {"segmentation fault": 1001, "abort": 1002, "hang": 1003, "exit": 1004, "out of memory": 1005, "one of two": 1006}
PARKED = 3  # exit code


def write_data(folder, records, mines, seed=1):
    """Records of random numbers; `mines`: record -> kind. @returns the data section of a job."""
    source = random.Random(seed)
    values, classes = [], []
    for record in range(records):
        row = [source.uniform(-1, 1) for _ in range(WIDTH)]
        classes.append(int(sum(row) > 0) + 2 * int(row[1] > row[2]))
        row[0] = KINDS[mines[record]] if record in mines else row[0]
        values += row
    (folder / "records.npy").write_bytes(small_data.npy((records, WIDTH), struct.pack(f"<{len(values)}f", *values)))
    (folder / "labels.npy").write_bytes(small_data.npy((records,), struct.pack(f"<{records}i", *classes), "<i4"))
    return {"format": "npy", "records": str(folder / "records.npy"), "labels": str(folder / "labels.npy"),
            "normalize": {"mean": 0, "std": 1}}


def make_spec(data, *, workers, log="every_step", shuffle=True, restarts=0, **train):
    """By default no death is allowed but those by which a record is found."""
    layers = [{"custom": {"type": "minefield"}}, {"linear": {"out_features": 16}}, "relu",
              {"linear": {"out_features": CLASSES}}]
    return {
        "name": "minefield",
        "model": {"input": [WIDTH], "layers": layers},
        "data": {"train": dict(data)},
        "train": {"epochs": 1, "microbatch_size": 8, "microbatches_per_step": 4, "shuffle": shuffle, "seed": 7,
                  "optimizer": {"sgd": {"lr": 0.02, "momentum": 0.9}}, **train},
        "cluster": {"workers": workers, "ps_shards": 2, "slot_timeout_s": 1, "restart": {"intensity": restarts}},
        "durability": {"log": log},
    }


def expect_left_out(job, mines):
    """Completed without those records, which are named. @returns the report."""
    code = job.wait_end()
    expect(code == PARKED, f"exit code {code}\n{job.output()}")
    job.expect_nothing_left()
    report = job.report()
    left_out = sorted(number for one in report["parked_shards"] for number in one["numbers"])
    expect(left_out == sorted(mines), f"left out are {report['parked_shards']}, not {sorted(mines)}\n{job.output()}")
    expect(report["samples_missing"] == len(left_out) and report["samples_duplicated"] == 0, f"{report}")
    told = {(event["text"]) for event in job.events("record-parked")}
    expect(all(any(f"number {record} in" in text for text in told) for record in mines), f"events tell {told}")
    return report


@contextlib.contextmanager
def in_environment(name, value):
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def disarmed():
    return in_environment("MINES_DISARMED", "1")


def mine_of_zeros(kind):
    """What a record of zeros is; no job has one."""
    return in_environment("MINE_OF_ZEROS", str(KINDS[kind]))


def skipped_on_request(bench, spec, report, mines):
    """The same job, left at its begin and resumed without the same records. @returns its report."""
    with disarmed(), bench.start(spec) as job:
        job.kill_everything_at_step(1)
        job.resume(options=option("--skip", [one["skip"] for one in report["parked_shards"]]))
        code = job.wait_end()
        expect(code == PARKED, f"exit code {code}\n{job.output()}")
        left_out = sorted(number for one in job.report()["parked_shards"] for number in one["numbers"])
        expect(left_out == sorted(mines), f"skipped on request are {left_out}")
        return job.report()


def expect_same_bits(bench, spec, report, mines):
    same = skipped_on_request(bench, spec, report, mines)
    expect(same["parameters_sha256"] == report["parameters_sha256"],
           f"{same['parameters_sha256']} when skipped on request, {report['parameters_sha256']} when found")
    return same
