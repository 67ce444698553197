"""The same parameters, bit for bit, for any number of workers and PS shards, in both placements, over both tensor channels, run after
run."""

import os
import unittest.mock

import small_data
from bench_case import bench_case, main

FEW = ((1, 1, "processes"), (3, 2, "processes"), (5, 3, "processes"), (2, 3, "threads"))
BAD_USAGE = 2
OVER_TCP = (2, 2, "processes")


def augmented(spec):
    spec["data"]["train"]["augment"] = {"random_crop": {"padding": 2}, "horizontal_flip": {"p": 0.5}}
    spec["data"]["validation"] = {"split": 0.1}


class same_bits(bench_case):
    def hashes(self, model, microbatches_per_step, shapes, change=None):
        found = {}
        for workers, ps_shards, placement in shapes:
            spec = self.spec(model, epochs=2, microbatches_per_step=microbatches_per_step, workers=workers,
                             ps_shards=ps_shards, placement=placement)
            if change:
                change(spec)
            found[workers, ps_shards, placement] = self.bench.complete(spec)["parameters_sha256"]
        return found

    def expect_one_hash(self, model, microbatches_per_step, shapes, change=None):
        found = self.hashes(model, microbatches_per_step, shapes, change)

        def over_tcp(spec):
            spec["cluster"]["tensor_channel"] = "tcp"
            if change:
                change(spec)

        found |= {(*shape, "tcp"): value for shape, value in self.hashes(model, microbatches_per_step, [OVER_TCP], over_tcp).items()}
        self.assertEqual(len(set(found.values())), 1, found)
        return next(iter(found.values()))

    def test_mlp_with_dropout_for_any_cluster_with_four_microbatches_a_step(self):
        self.expect_one_hash("mlp_dropout", 4, FEW)

    def test_mlp_with_dropout_with_six_and_seven_microbatches_a_step(self):
        for microbatches in (6, 7):
            self.expect_one_hash("mlp_dropout", microbatches, FEW[1:3])

    def test_cnn_with_batch_norm_for_any_cluster_with_seven_microbatches_a_step(self):
        self.expect_one_hash("cnn_batch_norm", 7, FEW)

    def test_cnn_with_batch_norm_and_augmented_images_with_four_and_six_microbatches_a_step(self):
        for microbatches in (4, 6):
            self.expect_one_hash("cnn_batch_norm", microbatches, FEW[1:3], augmented)

    def test_clipping_by_norm_with_adamw_and_a_schedule_for_any_cluster(self):
        coupled = self.expect_one_hash("cnn_batch_norm", 4, FEW, small_data.add_coupled_updates)
        unclipped = small_data.add_coupled_updates(self.spec("cnn_batch_norm", epochs=2))
        del unclipped["train"]["clip_norm"]
        self.assertNotEqual(self.bench.complete(unclipped)["parameters_sha256"], coupled)

    def test_the_same_job_twice_and_another_seed(self):
        first, second = (self.bench.complete(self.spec("cnn_batch_norm"))["parameters_sha256"] for _ in range(2))
        other = self.bench.complete(self.spec("cnn_batch_norm"), ["train.seed=8"])["parameters_sha256"]
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)


class threads_of_kernels(bench_case):
    """Two for each worker, whatever the environment of the job says: with fewer oneDNN would wait for ever."""

    def job_of(self, log):
        spec = self.spec("cnn_batch_norm", workers=2)
        spec["cluster"]["threads_per_worker"] = 2
        return spec | {"durability": {"log": log}}

    def test_are_as_many_as_the_job_says_in_any_environment(self):
        spec = self.job_of("every_step")
        plain = self.bench.complete(spec)["parameters_sha256"]
        for name, value in (("OMP_THREAD_LIMIT", "1"), ("OMP_MAX_ACTIVE_LEVELS", "0"), ("OMP_DYNAMIC", "true"), ("OMP_NUM_THREADS", "1")):
            with unittest.mock.patch.dict(os.environ, {name: value}):
                self.assertEqual(self.bench.complete(spec)["parameters_sha256"], plain, name)

    def test_that_a_command_may_not_have_itself_are_asked_for(self):
        with unittest.mock.patch.dict(os.environ, {"OMP_THREAD_LIMIT": "1"}), self.bench.start(self.job_of("auto")) as job:
            job.expect_complete()  # what auto measures is measured where workers compute
            code, _, complaint = job.ask("predict", "--input", self.data["records"])
            self.assertEqual(code, BAD_USAGE)
            self.assertIn("OMP_THREAD_LIMIT in the environment lets a process have 1 threads to compute with, and cluster.threads_per_worker is 2",
                          complaint)
        with unittest.mock.patch.dict(os.environ, {"OMP_MAX_ACTIVE_LEVELS": "0"}):
            self.assertEqual(job.ask("predict", "--input", self.data["records"])[0], 0)


if __name__ == "__main__":
    main()
