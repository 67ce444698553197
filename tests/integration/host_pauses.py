"""Hosts that are slow and badly linked, but there: processes stopped for half a second, lost packets, cores with too much to do."""

import contextlib
import os
import random
import signal
import subprocess
import time

PAUSE_S = 0.5
LOSS_PERCENT = 5
BETWEEN_S = (0.2, 1.5)  # two pauses


@contextlib.contextmanager
def busy_threads(count):
    """So many processes that only compute."""
    made = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in made:
            one.kill()
            one.wait()


@contextlib.contextmanager
def lost_packets(hosts, percent=LOSS_PERCENT):
    for name in hosts.names:
        hosts.drop(name, f"numgen random mod 100 < {percent}")
    try:
        yield
    finally:
        for name in hosts.names:
            hosts.heal(name)


def pause(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_S)  # what is tested, not a wait for anything
        finally:
            os.kill(pid, signal.SIGCONT)


def disturb(hosts, job, seconds, seed=1):
    """Stops the root and the agents of hosts in turn, at random moments, while the job runs, `seconds` at most.
    @returns how many pauses there were"""
    source, end, pauses = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < end and job.root.poll() is None:
        name = source.choice(hosts.names)
        pid = job.root.pid if name == hosts.names[0] else hosts.agent_of(name)
        if pid is not None:
            pause(pid)
            pauses += 1
        time.sleep(source.uniform(*BETWEEN_S))
    return pauses
