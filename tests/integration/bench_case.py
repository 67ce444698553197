"""Base of the test programs here: FILE DLRUN [unittest options]."""

import sys
import unittest

import dlrun_job
import small_data


class bench_case(unittest.TestCase):
    """Each test has a bench of its own; the data of a class is written once a test."""

    program = None
    records = 2003  # fills no step: the last of an epoch is partial

    def setUp(self):
        self.bench = dlrun_job.job_bench(self.program)
        self.addCleanup(self.bench.__exit__)
        self.data = small_data.write_images(self.bench.folder, "train", self.records)

    def spec(self, model="mlp_dropout", **options):
        return small_data.make_spec(model, self.data, **options)


def main():
    bench_case.program = sys.argv.pop(1)
    unittest.main(verbosity=2)
