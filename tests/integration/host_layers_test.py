"""A program's own layer on the stand-in of a GPU: the processor computes it, and the worker's log says which and what it takes."""

import os
import pathlib
import re
import sys
import unittest.mock

import paused_runs
from bench_case import bench_case, main

MODULES = pathlib.Path(sys.argv.pop(2))  # where the build has its modules for tests
SHARE = re.compile(r"host-share: (\d+\.\d) % of a step, in the mean of 8, go to layers on the processor and their copies")


class own_layers(bench_case):
    records = 96  # six steps an epoch

    def job(self, device, steps=24):
        spec = paused_runs.make_spec(self.data, steps=steps, slots=2, workers=1, records=self.records)
        spec["cluster"]["device"] = device
        return spec

    def log_of(self, spec):
        module = str(MODULES / "libdlrun_cuda_stand_in.so")
        with unittest.mock.patch.dict(os.environ, DLRUN_CUDA_MODULE=module), paused_runs.pauses(self.bench.folder, 0.01):
            with self.bench.start(spec) as job:
                job.expect_complete()
                return (job.run_dir / "logs" / "worker-0.log").read_text()

    def test_on_a_gpu_are_named_with_the_share_of_a_step_that_they_take_and_both_once(self):
        log = self.log_of(self.job("cuda"))
        self.assertEqual(len(re.findall(r"host-layers: \S+ of the model are computed on the processor", log)), 1, log)
        [share] = SHARE.findall(log)
        self.assertGreater(float(share), 0, log)
        self.assertLessEqual(float(share), 100, log)
        self.assertEqual(log.count("host-share"), 1, log)

    def test_on_a_processor_are_layers_like_others(self):
        log = self.log_of(self.job("cpu"))
        self.assertNotIn("host-layers", log)
        self.assertNotIn("host-share", log)

    def test_of_a_job_that_ends_before_it_was_measured_are_only_named(self):
        log = self.log_of(self.job("cuda", steps=6))
        self.assertIn("host-layers", log)
        self.assertNotIn("host-share", log)


if __name__ == "__main__":
    main()
