"""Holds a running job at a step."""

import signal
import time

from waiting import job_over

RUN_FIRST_S, RUN_MIN_S, RUN_MAX_S = 0.02, 0.002, 0.5  # how long the job runs between two looks
RATE_KEPT = 0.7  # of the highest rate, from look to look: a told step may jump by several slices
REPORT_S = 0.1  # a period of a PS shard's reports


class job_hold:
    """Stops a job's first PS shard, but for short slices, until it has come to a step; then until it is let go."""

    def __init__(self, job, step, condition):
        self.job, self.step, self.condition = job, step, condition
        self.holder, self.begun_us = None, time.monotonic_ns() // 1000  # the process that is stopped, and since when
        self.slices = []  # how long the job ran each time
        self.rate, self.last_step = 0, 0  # steps a second, and the step that the last look told

    def look(self, status):
        """@returns whether the job is held at the step, or a little later, and the condition holds; else lets it run for a slice.
        A PS shard tells its step when a period of its reports is over, so the next look waits for that: what it says is then as
        old as the last slice, and not older."""
        if "steps" not in status:  # of a run that is over: it has just been resumed, or its root is about to end
            return False
        if status["step"] >= status["steps"] > self.step:
            raise job_over(f"all {status['steps']} steps were trained before: step {self.step}\n{self.job.output()}")
        left = self.step - status["step"]
        if left <= 0 and self.condition(status) and self.is_held(status):
            return True
        if len(self.slices) > 1:
            self.rate = max(RATE_KEPT * self.rate, (status["step"] - self.last_step) / self.slices[-2])
        self.last_step = status["step"]
        if self.holder is None:  # it starts, and is soon on its way
            self.stop(status)
            return False
        begin = time.monotonic()
        self.let_go()
        time.sleep(self.slice_for(left))
        self.stop(status)
        self.slices.append(time.monotonic() - begin)
        time.sleep(max(0, REPORT_S - self.slices[-1]))
        return False

    def is_held(self, status):
        return self.job.is_ready(status) and self.job.holder_in(status) in (None, self.holder)

    def slice_for(self, left):
        """Most of what the job seems to need, at most twice as long as the last time; while it starts, always as short."""
        if not self.rate:
            return RUN_FIRST_S
        unseen = self.rate * self.slices[-1]  # what it did in the last slice is told in the next
        wanted = 0.8 * max(left - unseen, 0) / self.rate
        return max(RUN_MIN_S, min(wanted, 2 * self.slices[-1], RUN_MAX_S))

    def stop(self, status):
        self.holder = self.job.holder_in(status)
        if self.holder:
            self.job.send_signal(self.holder, signal.SIGSTOP)

    def was_killed(self):
        """Its process, as a role that hangs."""
        return any(event["role"] == "ps_shard" and event["index"] == 0 and event["monotonic_us"] >= self.begun_us
                   for event in self.job.events("role-hung"))

    def let_go(self):
        if self.holder:
            self.job.send_signal(self.holder, signal.SIGCONT)
