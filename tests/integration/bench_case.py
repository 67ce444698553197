"""Base of the test programs here: FILE DLRUN [unittest options]."""

import copy
import faulthandler
import json
import os
import pathlib
import signal
import sys
import unittest

import dlrun_job
import small_data


TRACE_EACH_S = 280


class bench_case(unittest.TestCase):
    """Each test has a bench of its own; the data of a class is written once a test."""

    program = None
    reports = {}  # of undisturbed runs
    records = 2003  # fills no step: the last of an epoch is partial
    bench_parent = None  # where the folder of the bench is to be, if not among other temporary ones

    def setUp(self):
        self.bench = dlrun_job.job_bench(self.program, self.bench_parent)
        self.addCleanup(self.bench.__exit__)
        self.data = small_data.write_images(self.bench.folder, "train", self.records)

    def enter_or_skip(self, context, cannot):
        """Enters it for the time of the test, which is left out where it cannot be made: `cannot` says why."""
        try:
            context.__enter__()
        except cannot as why:
            self.leave_out(why)
        self.addCleanup(context.__exit__)
        return context

    def leave_out(self, why):
        """Of what cannot be made here: in CI it must be."""
        if os.environ.get("CI"):
            raise why
        self.skipTest(f"it cannot be made here: {why}")

    def spec(self, model="mlp_dropout", **options):
        return small_data.make_spec(model, self.data, **options)

    def undisturbed(self, spec):
        """The report of an undisturbed run. Each is run once a program: the data is the same in every test."""
        key = (self.records, json.dumps(spec, sort_keys=True).replace(str(self.bench.folder), ""))
        if key not in self.reports:
            self.reports[key] = self.bench.complete(spec)
        return copy.deepcopy(self.reports[key])


def write_counts(result, wanted):
    """The counts in the form of GoogleTest, where its GTEST_OUTPUT=xml:FOLDER/ asks for them: ./check adds them up."""
    kind, _, folder = wanted.partition(":")
    if kind == "xml" and folder.endswith("/"):
        name = pathlib.Path(sys.argv[0]).stem
        pathlib.Path(folder, f"{name}.xml").write_text(
            f'<testsuites name="{name}" tests="{result.testsRun}" failures="{len(result.failures)}"'
            f' errors="{len(result.errors)}" disabled="{len(result.skipped)}"/>\n')


def main():
    # What a background job of a shell ignores, or one behind nohup, its children ignore as well: a
    # Ctrl-C or the end of a terminal would never come.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    faulthandler.dump_traceback_later(TRACE_EACH_S, repeat=True)  # of a test that is ended for its time it says where that was
    bench_case.program = sys.argv.pop(1)
    result = unittest.main(verbosity=2, exit=False).result
    write_counts(result, os.environ.get("GTEST_OUTPUT", ""))
    sys.exit(0 if result.wasSuccessful() else 1)
