"""A stopped coordinator holds nobody up; a stopped worker's slots move; what cannot go on ends with its reason."""

import paused_runs
import role_pauses
import small_data
from bench_case import bench_case, main

ENDLESS = 100000
EPOCHS, SLOT_S = 16, 0.005  # a step takes 10 ms: the job outlasts what happens to it
STOPPED_S, STEPS = 2.5, 20


class stopped_role(bench_case):
    def setUp(self):
        super().setUp()
        self.job = paused_runs.with_pauses(small_data.make_spec("mlp_dropout", self.data, epochs=EPOCHS, workers=3))
        self.reference = self.bench.complete(self.job)
        self.enterContext(paused_runs.pauses(self.bench.folder, SLOT_S))

    def test_steps_go_on_while_the_coordinator_is_stopped(self):
        role_pauses.pause_coordinator(self.bench, self.job, STOPPED_S, self.reference, STEPS)

    def test_the_others_do_the_slots_of_a_stopped_worker(self):
        role_pauses.pause_worker(self.bench, self.job, STEPS, self.reference)


class job_that_cannot_go_on(bench_case):
    def expect_failure(self, job, *words):
        """Exit 1, a report with a reason that holds the words, the reason as last line, no process left."""
        self.assertEqual(job.wait_end(), 1, job.output())
        job.expect_nothing_left()
        report = job.report()
        self.assertEqual(report["status"], "failed")
        for word in words:
            self.assertIn(word, report["reason"])
        self.assertIn(report["reason"], job.output().splitlines()[-1])

    NOTHING_KEPT = ["durability.log=off"]

    def test_a_killed_ps_shard_ends_a_job_that_keeps_nothing(self):
        with self.bench.start(self.spec(epochs=ENDLESS), self.NOTHING_KEPT) as job:
            job.wait_until_all_run()
            job.kill("ps_shard", 1)
            self.expect_failure(job, "ps_shard 1", "signal 9")

    def test_a_killed_coordinator_ends_a_job_that_keeps_nothing(self):
        with self.bench.start(self.spec(epochs=ENDLESS), self.NOTHING_KEPT) as job:
            job.wait_until_all_run()
            job.kill("coordinator")
            self.expect_failure(job, "coordinator", "signal 9")

    def test_without_a_restart_budget_the_first_death_ends_the_job(self):
        with self.bench.start(self.spec(epochs=ENDLESS), ["cluster.restart.intensity=0"]) as job:
            job.wait_until_all_run()
            job.kill("worker", 1)
            self.expect_failure(job, "worker 1")

    def test_one_death_more_than_the_restart_budget_ends_the_job(self):
        with self.bench.start(self.spec(epochs=ENDLESS), ["cluster.restart.intensity=2", "cluster.restart.period_s=3600"]) as job:
            for deaths in range(3):
                job.wait_until_all_run()
                job.kill("worker", deaths % 2)
                job.wait_for_exits(deaths + 1)
            self.expect_failure(job, "worker 0")
            report = job.report()
            self.assertEqual(report["error"], "restart_budget_exceeded")
            self.assertGreater(report["samples_committed"], 0)
            self.assertGreaterEqual(len(report["recoveries"]), 2)


if __name__ == "__main__":
    main()
