"""Workers killed at random, seeded moments: the same bits, no step redone, nobody else restarted, nothing left."""

import worker_kills
from bench_case import bench_case, main
from dlrun_job import all_run, until_held


class worker_kill(bench_case):
    def expect_survival(self, model, seeds):
        spec = worker_kills.make_spec(model, self.data)
        reference = self.undisturbed(spec)
        for seed in seeds:
            with self.subTest(seed=seed):
                worker_kills.run_with_kills(self.bench, spec, seed, reference)

    def test_an_mlp_with_dropout_survives_random_kills(self):
        self.expect_survival("mlp_dropout", (1, 2))

    def test_a_cnn_with_batch_norm_survives_random_kills(self):
        self.expect_survival("cnn_batch_norm", (3, 4))

    def test_all_workers_killed_at_once_and_again(self):
        spec = worker_kills.make_spec("mlp_dropout", self.data)
        reference = self.undisturbed(spec)["parameters_sha256"]
        everyone = [("worker", one) for one in range(worker_kills.WORKERS)]

        def run():
            with self.bench.start(spec) as job:
                for step in (1, 1, 300):
                    with job.held_from_step(step, all_run):
                        self.assertEqual(job.kill_together(everyone), worker_kills.WORKERS)
                return job.expect_complete()["parameters_sha256"]

        self.assertEqual(until_held(run), reference)


if __name__ == "__main__":
    main()
