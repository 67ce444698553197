"""What the acceptance scripts share: options, the shared test modules, figures."""

import argparse
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
sys.dont_write_bytecode = True

import dlrun_job
import small_data

RECORDS = 2003  # fills no step: the last of an epoch is partial


def make_parser(doc):
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/dlrun", metavar="FILE",
                        help="the dlrun to run (default: build/release/bin/dlrun)")
    return parser


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


def ms_until_event(job, name, index, since_us):
    """The first such event of a role after a moment: milliseconds since then, or None."""
    for event in job.events(name):
        if event["index"] == index and event["monotonic_us"] >= since_us:
            return (event["monotonic_us"] - since_us) / 1000
    return None


def summary(name, values, bound, unit="ms"):
    """Prints median and worst beside the bound. @returns whether the worst keeps it."""
    worst = max(values)
    say(f"{name}: median {statistics.median(values):.1f} {unit}, worst {worst:.1f} {unit} of {len(values)}"
        f" (bound {bound} {unit})")
    return worst <= bound


def run(main):
    """Runs `main()`; a broken promise is one line and exit status 1."""
    try:
        sys.exit(main())
    except dlrun_job.expectation_failed as problem:
        print(f"FAILED: {problem}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
