"""Slots follow the measured speed of workers: one that becomes slow gets few or none, and its share back when it is fast
again. Who waits for a slow one computes its slots. The bits stay the same."""

import json
import signal
import urllib.request

import dlrun_job
import paused_runs
from bench_case import bench_case, main

SLOTS = 12
WORKERS = 3
STEPS = 3000
SLOT_S = 0.02  # a step takes 80 ms: the job is not over while it is watched
SLOW = 10
STUCK = 1000  # a slot takes 20 s
STEPS_WITHOUT = 20

STALL = 'dlrun_stall_seconds{role="worker",index="0",host="",phase="computing"}'


def metrics_of(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=dlrun_job.PATIENCE_S) as answer:
        return answer.read().decode()


class straggler(bench_case):
    def spec(self, workers=WORKERS, log="every_step"):
        return paused_runs.make_spec(self.data, steps=STEPS, slots=SLOTS, workers=workers, records=self.records, log=log)

    def start(self, pause_s=SLOT_S):
        """@returns the job, when all of its workers compute, and the pauses of its workers"""
        pauses = self.enterContext(paused_runs.pauses(self.bench.folder, pause_s))
        job = self.enterContext(self.bench.start(self.spec()))
        job.wait_for(lambda status: paused_runs.shares_of(status) == [SLOTS // WORKERS] * WORKERS, "all have equal shares")
        return job, pauses

    def expect_same_bits(self, job, pauses):
        pauses.end()
        self.assertEqual(job.wait_end(), 0, job.output())
        job.expect_nothing_left()
        report, undisturbed = job.report(), self.undisturbed(self.spec(workers=1))
        self.assertEqual(report["parameters_sha256"], undisturbed["parameters_sha256"])
        self.assertEqual((report["samples_missing"], report["samples_duplicated"], report["steps_redone"]), (0, 0, 0))
        self.assertEqual(job.events("role-exited"), [])

    def test_a_slow_worker_gets_no_slots_and_its_share_back_when_it_is_fast_again(self):
        job, pauses = self.start()
        slow = paused_runs.workers_of(job.status())[1]
        pauses.set(slow["pid"], SLOW)
        status = job.wait_for(lambda status: paused_runs.shares_of(status)[1] <= 1, "the slow worker has no slots")
        workers = paused_runs.workers_of(status)
        self.assertLess(workers[1]["slots_per_second"], workers[0]["slots_per_second"] / 2)
        pauses.set(slow["pid"], 1)
        job.wait_for(lambda status: paused_runs.shares_of(status) == [SLOTS // WORKERS] * WORKERS, "it has its share again")
        self.expect_same_bits(job, pauses)

    def test_no_step_waits_for_a_worker_that_is_stuck_in_its_slots(self):
        job, pauses = self.start()
        stuck = paused_runs.workers_of(job.status())[1]
        pauses.set(stuck["pid"], STUCK)
        before = job.status()["step"]
        job.wait_for(lambda status: status["step"] >= before + STEPS_WITHOUT, "the others go on", patience_s=SLOT_S * STUCK)
        self.expect_same_bits(job, pauses)

    def test_workers_that_become_slow_in_turn_and_are_stopped_change_no_bit(self):
        job, pauses = self.start()
        pids = [worker["pid"] for _, worker in sorted(paused_runs.workers_of(job.status()).items())]
        for pid in pids:
            at = job.status()["step"]
            pauses.set(pid, SLOW)
            job.wait_for(lambda status, at=at: status["step"] >= at + STEPS_WITHOUT, "steps go on beside a slow worker")
            job.send_signal(pid, signal.SIGSTOP)
            job.wait_for(lambda status, at=at: status["step"] >= at + 2 * STEPS_WITHOUT, "steps go on beside a stopped worker")
            job.send_signal(pid, signal.SIGCONT)
            pauses.set(pid, 1)
        self.expect_same_bits(job, pauses)

    def test_a_step_that_takes_long_names_worker_and_slot(self):
        pauses = self.enterContext(paused_runs.pauses(self.bench.folder, SLOT_S))
        port = dlrun_job.free_port()
        spec = self.spec(workers=1)
        job = self.enterContext(self.bench.start({**spec, "observability": {"prometheus_port": port}}))
        status = job.wait_for(lambda status: status["step"] > 0, "it trains")
        pauses.set(paused_runs.workers_of(status)[0]["pid"], STUCK)
        stall = job.wait_for(lambda status: status["stall"], "it says whom it waits for")["stall"]
        self.assertEqual((stall["role"], stall["index"], stall["phase"]), ("worker", 0, "computing"))
        self.assertGreaterEqual(stall["seconds"], 1)
        self.assertIn(f"it waits for worker 0, which computes slot {stall['slot']}\n", job.ask("status")[1])
        dlrun_job.wait_until(lambda: STALL in metrics_of(port), "the metrics say so")
        told = job.events("stalled")[-1]
        self.assertEqual((told["role"], told["index"], told["reason"], told["values"]), ("worker", 0, "computing", {"slot": stall["slot"]}))
        pauses.end()
        job.kill("worker", 0)  # what it is at takes 20 s
        dlrun_job.wait_until(lambda: job.events("stall-over"), "a step was made")
        self.assertEqual(job.wait_end(), 0, job.output())
        self.assertIsNone(json.loads(job.ask("status", "--json")[1]).get("stall"))


if __name__ == "__main__":
    main()
