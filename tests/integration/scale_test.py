"""The number of workers changes while a job runs, whoever is killed meanwhile: the same bits, no step done again."""

import contextlib
import random
import signal
import time

import small_data
from bench_case import bench_case, main
from dlrun_job import all_run, expect, has_workers, job_over, pid_of, wait_until

SLOTS = 4
EPOCHS = 120
HELD_CHANGES, FREE_CHANGES = 5, 6  # at most: with each, a job is longer
DEPARTURES = 3  # scripts/acceptance/sigterm_phases has more, in each phase of a worker's work
LONG = 100_000  # epochs of a job that a test ends
KINDS = ("worker", "ps_shard", "coordinator")


def count(status, what="present"):
    """None of a run that is over."""
    return status.get("workers", {}).get(what)


def workers_of(status):
    return [role for role in status["roles"] if role["role"] == "worker" and role["pid"]]


class scale(bench_case):
    def long_job(self, workers=1, **cluster):
        spec = self.spec(epochs=LONG, workers=workers, ps_shards=1, microbatches_per_step=SLOTS)
        spec["cluster"].update(cluster)
        return self.bench.start(spec)

    def scale_to(self, job, workers, *options):
        code, said, complaint = job.ask("scale", "--workers", str(workers), *options)
        self.assertEqual((code, complaint), (0, ""), said)

    def scale_and_wait(self, job, workers):
        self.scale_to(job, workers, "--wait")
        status = job.status()
        self.assertEqual(status["workers"], {"wanted": workers, "present": workers, "leaving": 0})
        self.assertEqual([role["index"] for role in workers_of(status)], list(range(workers)))

    def refusal(self, folder_or_job, workers):
        """What `dlrun scale` complains of, with exit code 2."""
        code, said, complaint = folder_or_job.ask("scale", "--workers", str(workers))
        self.assertEqual((code, said), (2, ""), complaint)
        return complaint

    # ---- the same bits

    def change_while_held(self, job, source, kills):
        """1 -> 4 -> 1 -> ... workers, and SIGKILLs in between, each when the workers of the one before have come and gone. The
        job is held until then: it is not over meanwhile, however slow the machine is."""
        workers, step = 1, 1
        for changes in range(1, HELD_CHANGES + 1):
            with job.held_from_step(step, lambda status, wanted=workers: has_workers(status, wanted)) as status:
                workers = self.change(job, source, kills, changes)
                step = status["step"] + 1

    def change(self, job, source, kills, changes):
        """@param changes the number of this one @returns how many workers are wanted now"""
        workers = SLOTS if changes % 2 else 1
        self.scale_to(job, workers)
        if kills:
            job.kill(kills[changes % len(kills)] if changes % 2 else source.choice(KINDS))
        return workers

    def change_now_and_then(self, job, source, kills):
        """The same at any moment, for a while. @returns how many changes there were."""
        self.change_while_held(job, source, kills)
        try:
            for changes in range(HELD_CHANGES + 1, HELD_CHANGES + FREE_CHANGES + 1):
                workers = self.change(job, source, kills, changes)
                job.wait_for(lambda status, wanted=workers: count(status) == wanted, f"{workers} workers are there")
        except (job_over, AssertionError):
            expect(job.root.wait(60) in (0,), f"the job goes on\n{job.describe()}")
        return changes

    def test_workers_come_and_go_and_the_bits_stay(self):
        spec = self.spec(epochs=EPOCHS, workers=1, microbatches_per_step=SLOTS)
        reference = self.undisturbed(spec)["parameters_sha256"]
        with self.bench.start(spec) as job:
            changes = self.change_now_and_then(job, random.Random(1), ())
            self.assertGreater(changes, 4)
            report = job.expect_complete()
            self.assertEqual(report["parameters_sha256"], reference)
            self.assertEqual(report["recoveries"], [])
            self.assertEqual(job.events("role-exited"), [])
            self.assertGreater(len(job.events("worker-left")), 3)

    def test_anybody_may_be_killed_meanwhile(self):
        spec = self.spec(epochs=EPOCHS, workers=1, microbatches_per_step=SLOTS)
        spec["durability"] = {"log": "every_step"}
        reference = self.undisturbed(spec)["parameters_sha256"]
        with self.bench.start(spec) as job:
            changes = self.change_now_and_then(job, random.Random(2), ("coordinator", "worker", "ps_shard"))
            self.assertGreater(changes, 3)
            self.assertEqual(job.expect_complete(may_redo=True)["parameters_sha256"], reference)

    # ---- the journal has it

    def test_a_number_that_was_acknowledged_outlives_the_coordinator(self):
        with self.long_job(workers=2) as job:
            job.wait_until_all_run()
            self.scale_to(job, 3)
            job.kill("coordinator")
            job.wait_for(lambda status: count(status) == 3 and all(
                role["incarnation"] > 1 for role in status["roles"] if role["role"] == "coordinator"), "3 workers are there")

    def test_a_run_that_is_resumed_goes_on_with_the_number(self):
        with self.long_job(workers=2) as job:
            job.wait_until_all_run()
            self.scale_and_wait(job, 3)
            job.kill_everything()
            job.resume()
            job.wait_for(lambda status: status.get("workers") == {"wanted": 3, "present": 3, "leaving": 0}, "3 workers are there")
            job.kill_everything()
            job.resume(["cluster.workers=1"])
            status = job.wait_for(lambda status: count(status) == 1 and status["step"] > 0, "one is there")
            self.assertEqual(count(status, "wanted"), 1)

    # ---- leaving

    def expect_replaced(self, job, index, before):
        """The worker's process `before` leaves, and another takes its place."""
        wait_until(lambda: not job.is_ours(before), f"process {before} has left")
        return job.wait_for(lambda status: pid_of(status, "worker", index) not in (None, before)
                            and count(status) == 2, f"worker {index} is replaced")

    def test_a_worker_that_has_a_sigterm_leaves_and_is_replaced(self):
        with self.long_job(workers=2, restart={"intensity": 0, "period_s": 60}) as job:
            job.wait_until_all_run()
            for _ in range(DEPARTURES):
                pid, _ = job.kill("worker", 1, signal.SIGTERM)
                self.expect_replaced(job, 1, pid)
            self.assertEqual(job.events("role-exited"), [])
            self.assertEqual(len(job.events("worker-left")), DEPARTURES)

    def test_a_worker_may_have_a_sigterm_while_it_starts(self):
        with self.long_job(workers=2, restart={"intensity": 0, "period_s": 60}) as job:
            job.wait_until_all_run()
            for _ in range(DEPARTURES):
                pid, _ = job.kill("worker", 1, signal.SIGTERM)
                job.wait_for(lambda status: pid_of(status, "worker", 1) not in (None, pid), "the next one starts", poll_s=0.001)
                pid, _ = job.kill("worker", 1, signal.SIGTERM)
                self.expect_replaced(job, 1, pid)
            self.assertEqual(job.events("role-exited"), [])

    def test_sigterms_at_any_moment_also_of_an_evaluation_cost_no_step(self):
        spec = self.spec(epochs=EPOCHS, workers=2, microbatches_per_step=SLOTS)
        spec["data"]["validation"] = small_data.write_images(self.bench.folder, "validation", 1501, seed=2)
        spec["train"]["evaluate_every"] = "5 epoch"
        spec["cluster"]["restart"] = {"intensity": 0, "period_s": 60}
        reference, source, asked = self.undisturbed(spec), random.Random(3), 0
        with self.bench.start(spec) as job:
            while asked <= HELD_CHANGES:
                with job.held_from_step(1, all_run):
                    job.kill("worker", source.choice((0, 0, 1)), signal.SIGTERM)  # worker 0 evaluates
                    asked += 1
            with contextlib.suppress(job_over):
                while True:
                    time.sleep(source.uniform(0, 0.3))  # any moment
                    job.wait_until_all_run()
                    job.kill("worker", source.choice((0, 0, 1)), signal.SIGTERM)
                    asked += 1
            report = job.expect_complete()
            self.assertGreater(asked, 4)
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
            self.assertEqual(report["evaluations"], reference["evaluations"])
            self.assertEqual(job.events("role-exited"), [])

    def test_all_workers_may_have_a_sigterm_at_once(self):
        with self.long_job(workers=2, restart={"intensity": 0, "period_s": 60}) as job:
            job.wait_until_all_run()
            pids = job.wait_for_processes([("worker", 0), ("worker", 1)])
            for pid in pids:
                job.send_signal(pid, signal.SIGTERM)
            for index, pid in enumerate(pids):
                self.expect_replaced(job, index, pid)
            step = job.status()["step"]
            job.wait_for(lambda status: status["step"] > step, "steps go on")

    def test_who_cannot_leave_is_killed_when_its_grace_is_over(self):
        with self.long_job(workers=2, leave_grace_s=0.5) as job:
            job.wait_until_all_run()
            pid, _ = job.kill("worker", 1, signal.SIGSTOP)
            self.scale_to(job, 1)
            wait_until(lambda: not job.is_ours(pid), f"process {pid} is killed")
            job.wait_for(lambda status: status.get("workers") == {"wanted": 1, "present": 1, "leaving": 0}, "one is left")

    def test_a_job_that_is_stopped_waits_for_nobody_who_leaves(self):
        with self.long_job(workers=2) as job:
            job.wait_until_all_run()
            job.kill("worker", 1, signal.SIGSTOP)
            self.scale_to(job, 1)
            job.ask("stop")
            self.assertEqual(job.wait_end(30), 130)
            job.expect_nothing_left()

    # ---- bad input

    def test_what_cannot_be_is_refused_with_the_way_out(self):
        with self.long_job(workers=1) as job:
            job.wait_until_all_run()
            self.assertIn("'dlrun stop' ends", self.refusal(job, 0))
            self.assertIn("cluster.workers_max", self.refusal(job, SLOTS + 1))
            self.assertEqual(job.ask("scale", "--workers", "x")[0], 2)
            job.ask("stop")
            job.wait_end()
            self.assertIn("is over (interrupted at step", self.refusal(job, 2))
            job.run_dir = self.bench.folder / "nowhere"
            self.assertIn("there is no run folder", self.refusal(job, 2))

    def test_a_finished_run_has_no_workers(self):
        with self.bench.start(self.spec(epochs=1, workers=1)) as job:
            job.expect_complete()
            self.assertIn("is over (completed at step", self.refusal(job, 2))

    def test_threads_come_and_go_too(self):
        with self.long_job(workers=1, placement="threads") as job:
            job.wait_until_all_run()
            for workers in (3, 1, 4, 2):
                self.scale_and_wait(job, workers)


if __name__ == "__main__":
    main()
