"""How tests wait: for a condition, with a deadline; and what they say when it does not come."""

import contextlib
import os
import time

POLL_S = 0.02
PATIENCE_S = 180  # long enough for sanitizers on a busy machine


class expectation_failed(AssertionError):
    """What was promised and did not happen, in words."""


class job_over(expectation_failed):
    """The job ended while something was waited for."""


class completed_early(job_over):
    """It was completed before it could be held: nothing is known of what the test is about."""


def expect(condition, what):
    if not condition:
        raise expectation_failed(what)


def wait_until(condition, what, patience_s=PATIENCE_S, poll_s=POLL_S):
    """Polls until `condition()` is true. @returns its value."""
    deadline = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        expect(time.monotonic() < deadline, f"not within {patience_s} s: {what}")
        time.sleep(poll_s)


@contextlib.contextmanager
def promptly():
    """Within, this thread runs before all others of the machine, where it may (as root): on a busy machine, too, it stops in
    time what it lets go for a moment. What it starts is ordinary."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)
