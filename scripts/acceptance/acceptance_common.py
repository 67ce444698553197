"""What the acceptance scripts share: options, the shared test modules, figures."""

import argparse
import contextlib
import os
import pathlib
import signal
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
sys.dont_write_bytecode = True

import dlrun_job
import small_data

RECORDS = 2003  # fills no step: the last of an epoch is partial
MORE_KIB_MAX, MORE_DESCRIPTORS_MAX = 8 << 10, 4
FLOAT_BYTES, PLANES = 4, 2  # of state: parameters and momentum
WRITE_BUFFER_KIB = {"ps_shard": 16 << 10}  # persistence/store_opening.cpp


def make_parser(doc, program="dlrun"):
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin" / program, metavar="FILE",
                        help=f"the dlrun to run (default: build/release/bin/{program})")
    return parser


def wide_spec(data, state_mb, *, ps_shards=1, epochs=1000):
    """A square layer for each PS shard, which holds so much state; one worker, a record a step: as little computing as there can be for that."""
    side = round((state_mb * 1e6 / FLOAT_BYTES / PLANES) ** 0.5)
    spec = small_data.make_spec("mlp_dropout", data, epochs=epochs, workers=1, ps_shards=ps_shards, microbatches_per_step=1)
    spec["model"]["layers"] = ["flatten", *[{"linear": {"out_features": side}}, "relu"] * (1 + ps_shards), {"linear": {"out_features": 10}}]
    spec["train"]["microbatch_size"] = 1
    spec["train"]["optimizer"]["sgd"]["lr"] = 1e-4
    return spec


def say(text):
    print(text, flush=True)


class stolen_time:
    """On a virtual machine: which share of all cores' time its host gave to others since this was made."""

    TICKS = os.sysconf("SC_CLK_TCK") * os.cpu_count()  # a second

    def __init__(self):
        self.begin, self.stolen = time.monotonic(), self.ticks()

    @staticmethod
    def ticks():
        return int(pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])

    def share(self):
        return (self.ticks() - self.stolen) / max(1.0, (time.monotonic() - self.begin) * self.TICKS)


def is_table(link):
    """Of RocksDB: how many it has open goes up and down between two compactions."""
    with contextlib.suppress(OSError):
        return os.readlink(link).endswith(".sst")
    return True  # closed meanwhile


def resources(pid):
    """@returns resident memory that is the process's own, in KiB, and its open descriptors without tables of RocksDB"""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    fields = {line.split(":")[0]: int(line.split()[1]) for line in rollup[1:]}
    descriptors = sum(not is_table(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    return fields["Private_Clean"] + fields["Private_Dirty"], descriptors


def stays_flat(role, early, late):
    """Whether `late`, as resources() has it, is not more than a process of that role may have gained since `early`."""
    return (late[0] - early[0] <= MORE_KIB_MAX + WRITE_BUFFER_KIB.get(role, 0)
            and late[1] - early[1] <= MORE_DESCRIPTORS_MAX)


def ms_until_event(job, name, index, since_us):
    """The first such event of a role after a moment: milliseconds since then, or None."""
    for event in job.events(name):
        if event["index"] == index and event["monotonic_us"] >= since_us:
            return (event["monotonic_us"] - since_us) / 1000
    return None


def summary(name, values, bound, unit="ms"):
    """Prints median, worst, and of many the 99th of 100, beside the bound. @returns whether the worst keeps it."""
    worst = max(values)
    p99 = f" p99 {sorted(values)[len(values) * 99 // 100 - 1]:.1f} {unit}," if len(values) >= 100 else ""
    say(f"{name}: median {statistics.median(values):.1f} {unit},{p99} worst {worst:.1f} {unit} of {len(values)}"
        f" (bound {bound} {unit})")
    return worst <= bound


def run(main):
    """Runs `main()`; a broken promise is one line and exit status 1. SIGTERM ends it as Ctrl-C does: jobs and hosts go with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(main())
    except dlrun_job.expectation_failed as problem:
        print(f"FAILED: {problem}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
