"""Stops a role's process (SIGSTOP) for a while and checks that the job neither waits for it nor replaces anybody else."""

import signal
import time

import small_data
from dlrun_job import all_run, expect, identities

STATUS_LAG_STEPS = 300
EPOCHS_A_SECOND = 45  # what small jobs do on a quiet machine: a job must outlast its pause


def make_spec(train, seconds):
    return small_data.make_spec("mlp_dropout", train, epochs=int(EPOCHS_A_SECOND * (seconds + 2)), workers=3)


def pause_coordinator(bench, spec, seconds, reference, steps_min=0):
    """For so many seconds, and until so many steps were made. @returns the steps applied during the pause, and the report."""
    with bench.start(spec) as job:
        with job.held_from_step(1, all_run) as before:
            job.kill("coordinator", which=signal.SIGSTOP)
        stopped_at = time.monotonic()
        seen = job.wait_for(lambda now: now["step"] > before["step"], "the first step without a coordinator")
        first = last = seen["step"]
        while time.monotonic() < stopped_at + seconds or last - first < steps_min:
            last = job.wait_for(lambda now: now["step"] > last or now["step"] == reference["steps"]
                                or time.monotonic() >= stopped_at + seconds, "steps go on")["step"]
        status = job.status()
        expect(identities(status, ("coordinator", "ps_shard", "worker", "agent"))
               == identities(before, ("coordinator", "ps_shard", "worker", "agent")),
               f"somebody was restarted: {before} and then {status}")
        for pid in list(job.stopped):
            job.send_signal(pid, signal.SIGCONT)
        report = job.expect_complete()
        expect(not job.troubles(), f"nothing should be told, but: {job.troubles()}")
        expect(report["parameters_sha256"] == reference["parameters_sha256"], "other parameters than without a pause")
        return last - first, report


def pause_worker(bench, spec, steps, reference):
    """Stops a worker until the others have done `steps` more. @returns how long they waited for its slots, in s, and the report."""
    with bench.start(spec) as job:
        with job.held_from_step(1, all_run) as status:
            pid, _ = job.kill("worker", 1, signal.SIGSTOP)
        begin, stopped_at = time.monotonic(), status["step"]
        # `status` is late by some steps; so many more need its slots done by somebody else.
        job.wait_for(lambda now: now["step"] >= stopped_at + STATUS_LAG_STEPS, "the others go on")
        waited = time.monotonic() - begin
        job.wait_for_step(stopped_at + STATUS_LAG_STEPS + steps)
        job.send_signal(pid, signal.SIGCONT)
        report = job.expect_complete()
        expect(report["parameters_sha256"] == reference["parameters_sha256"], "other parameters than without a pause")
        expect(all(event["role"] == "worker" for event in job.troubles()), f"others died as well: {job.troubles()}")
        return waited, report
