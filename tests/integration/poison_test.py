"""Records that end their workers are found, left out and named; all others are trained, with the bits of `--skip`."""

import signal

import dlrun_job
import poison_runs
from bench_case import bench_case, main

RECORDS = 1003
INTERRUPTED = 130


class poison(bench_case):
    def setUp(self):
        self.bench = dlrun_job.job_bench(self.program)
        self.addCleanup(self.bench.__exit__)

    def job_with(self, mines, **options):
        spec = poison_runs.make_spec(poison_runs.write_data(self.bench.folder, RECORDS, mines), **options)
        return spec, self.enterContext(self.bench.start(spec))

    def test_whatever_a_record_does_it_alone_is_left_out_and_no_death_of_it_counts_as_a_restart(self):
        mines = {100: "segmentation fault", 301: "abort", 502: "hang", 703: "exit", 904: "out of memory"}
        for workers, log in ((1, "every_step"), (3, "snapshots")):
            with self.subTest(workers=workers, log=log):
                spec, job = self.job_with(mines, workers=workers, log=log)
                report = poison_runs.expect_left_out(job, mines)
                poison_runs.expect_same_bits(self.bench, spec, report, mines)

    def test_several_in_one_slot_and_in_one_step(self):
        # In file order: slots of 8 records, 4 slots a step. 64..95 is step 2.
        mines = {64: "abort", 66: "segmentation fault", 71: "abort", 72: "abort", 95: "segmentation fault"}
        spec, job = self.job_with(mines, workers=2, shuffle=False)
        report = poison_runs.expect_left_out(job, mines)
        self.assertEqual([one["skip"] for one in report["parked_shards"]],
                         ["2:0:0", "2:0:2", "2:0:7", "2:1:0", "2:3:7"])
        poison_runs.expect_same_bits(self.bench, spec, report, mines)

    def test_of_records_that_end_it_only_together_the_last_is_left_out(self):
        mines = {160: "one of two", 165: "one of two"}
        _, job = self.job_with(mines, workers=2, shuffle=False)
        poison_runs.expect_left_out(job, [165])

    def test_a_coordinator_that_dies_and_a_resume_in_between_lose_nothing(self):
        mines = {100: "abort", 301: "hang", 704: "segmentation fault", 705: "abort"}
        spec, job = self.job_with(mines, workers=2, restarts=100)
        dlrun_job.wait_until(lambda: job.events("slot-suspected"), "a slot is suspected")
        job.kill("coordinator")
        dlrun_job.wait_until(lambda: job.events("role-hung") or job.root.poll() is not None, "a worker hangs")
        job.kill_everything()
        job.resume()
        report = poison_runs.expect_left_out(job, mines)
        poison_runs.expect_same_bits(self.bench, spec, report, mines)

    def test_a_healthy_worker_that_is_killed_counts_against_no_slot(self):
        with poison_runs.disarmed():  # computes for so long that it dies in the middle of a slot
            _, job = self.job_with({}, workers=2, epochs=10_000, restarts=100)
        signals = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1)
        for count, which in enumerate(signals, 1):
            job.kill("worker", 0, which)
            job.wait_for_exits(count)  # else the next one may be for a process that is about to end
        job.root.send_signal(signal.SIGINT)
        self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
        self.assertEqual(job.report()["parked_shards"], [])
        self.assertEqual(job.events("slot-suspected"), [])
        self.assertFalse([event for event in job.events("role-exited") if " in slot " in event["text"]])

    def test_a_layer_that_cannot_bear_zeros_ends_no_trial_of_a_microbatch_but_its_own(self):
        for mine in ("segmentation fault", "abort", "exit", "out of memory"):
            with self.subTest(mine=mine), poison_runs.mine_of_zeros(mine):
                _, job = self.job_with({}, workers=1, log="auto")
                self.assertEqual(job.expect_complete()["durability"]["log"], "snapshots")
                self.assertIn("how long a step takes could not be tried, on records of zeros: ", job.output())

    def test_a_run_that_is_interrupted_while_a_layer_hangs_on_zeros_goes_on_later(self):
        with poison_runs.mine_of_zeros("hang"):
            spec, job = self.job_with({}, workers=1, log="auto")
            dlrun_job.wait_until(lambda: (job.run_dir / "spec.yaml").exists(), "it begins")
            job.root.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            job.expect_nothing_left()
        job.resume()
        bits = job.expect_complete()["parameters_sha256"]
        self.assertEqual(bits, self.bench.complete(spec | {"durability": {"log": "every_step"}})["parameters_sha256"])

    def test_a_layer_that_dies_of_everything_ends_the_job_with_the_reason(self):
        _, job = self.job_with({record: "abort" for record in range(RECORDS)}, workers=2)
        self.assertEqual(job.wait_end(), 1, job.output())
        reason = job.report()["reason"]
        self.assertIn("more than 0 restarts", reason)
        self.assertIn("ABRT", reason)
        job.expect_nothing_left()


if __name__ == "__main__":
    main()
