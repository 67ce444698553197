"""Jobs on the stand-in of a GPU whose devices fail: no memory, an error that stays, a hang. And roles that are killed meanwhile."""

import os
import random
import shutil

import small_data
from dlrun_job import all_run, expect, wait_until

VARIABLE = "DLRUN_CUDA_MODULE"
STAND_IN = "libdlrun_cuda_stand_in.so"
RECORDS = 611  # the stand-in is slow, and the last step of an epoch is partial
EPOCHS = {"mlp_dropout": 4, "cnn_batch_norm": 2}
LONGER = 3  # times, for what happens to a job
PS_SHARDS = 2
KILLED_BEFORE = 0.7  # of all steps
# Of a device's own count: which allocation, or which step. The first slot allocates, and takes
# about 20 steps of these models.
NUMBERS_MAX = {"no_memory_at": 8, "fails_at_step": 60, "hangs_at_step": 60}
# What the worker whose device it was says at its end.
LAST_WORDS = {"no_memory_at": "memory", "fails_at_step": "the device failed: injected",
              "hangs_at_step": "the device gave no answer for 10 s"}
DEVICE = tuple(NUMBERS_MAX)
PRECISIONS = ("fp32", "tf32", "bf16")
KINDS = ("worker", "ps_shard", "coordinator", "ps_shard_and_workers", *DEVICE)


class stand_in_devices:
    """Two devices in this process's environment, as a copy of the module that has faults of its own."""

    def __init__(self, modules, folder):
        self.file = folder / STAND_IN
        self.faults = folder / f"{STAND_IN}.faults"
        self.original = modules / STAND_IN

    def __enter__(self):
        self.faults.mkdir(parents=True)
        shutil.copy(self.original, self.file)
        self.before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(self.file)
        return self

    def __exit__(self, *_):
        os.environ.pop(VARIABLE)
        if self.before is not None:
            os.environ[VARIABLE] = self.before

    def clear(self):
        """No fault is to come."""
        for file in self.faults.iterdir():
            file.unlink()

    def give(self, kind, number, always=False, gpu=None):
        """The next device that is opened fails at that; or each one, or each of that GPU, as long as there is no other fault.
        @returns its file"""
        own = f"gpu{gpu}-" if gpu is not None else ""
        file = self.faults / f"{own}{'always-' if always or own else ''}{kind}-{number}"
        file.touch()
        return file


def make_spec(model, train, workers, precision="fp32"):
    spec = small_data.make_spec(model, train, epochs=LONGER * EPOCHS[model], workers=workers, ps_shards=PS_SHARDS)
    spec["cluster"]["device"] = "cuda"
    spec["train"]["precision"] = precision
    spec["durability"] = {"log": "every_step"}
    return spec


def carry_out(job, devices, kind, workers, source):
    """@returns how many processes end by it."""
    worker = ("worker", source.randrange(workers))
    if kind in DEVICE:
        fault = devices.give(kind, source.randint(1, NUMBERS_MAX[kind]))
        job.kill_together([worker])
        wait_until(lambda: not fault.exists() or job.root.poll() is not None, f"a device takes {kind}")
        return 2
    shard = ("ps_shard", source.randrange(PS_SHARDS))
    victims = {"worker": [worker], "ps_shard": [shard], "coordinator": [("coordinator", 0)],
               "ps_shard_and_workers": [shard, *(("worker", one) for one in range(workers))]}
    return job.kill_together(victims[kind])


def told_of(job, kind):
    """How many ends of workers are told so far with what such a device said."""
    return kind in DEVICE and sum(LAST_WORDS[kind] in event["text"] for event in job.events("role-exited"))


def wait_until_told(job, kind, before):
    with job.over_is_too_early():
        job.wait_for(lambda _: told_of(job, kind) > before, f"{kind} ends its worker")


def run_with(bench, devices, data, model, workers, kinds, seed, reference, precision="fp32"):
    """One job in which these happen one after the other, from moments of the seed on. It must end with the parameters of
    `reference`, and with all records. @returns (ends of processes, the report). completed_early where it was over before all was done"""
    source, ends = random.Random(seed), 0
    devices.clear()
    moments = sorted(source.sample(range(1, int(reference["steps"] * KILLED_BEFORE)), len(kinds)))
    with bench.start(make_spec(model, data, workers, precision)) as job:
        for step, kind in zip(moments, kinds):
            with job.held_from_step(step, all_run):
                before = told_of(job, kind)
                ends += carry_out(job, devices, kind, workers, source)
            if kind in DEVICE:
                wait_until_told(job, kind, before)
        report = job.expect_complete(may_redo=True)
    for key in ("parameters_sha256", "samples_committed", "train_loss", "parked_shards"):
        expect(report[key] == reference[key], f"{key} {report[key]}, undisturbed {reference[key]}")
    return ends, report
