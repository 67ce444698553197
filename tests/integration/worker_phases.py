"""What a worker does at a moment, and a SIGTERM that it has at just such a moment.

Nothing is left to luck: a process is stopped (SIGSTOP), looked at while it stands still, has its SIGTERM if it is where it was
wanted, and goes on. One that is somewhere else goes on without, and is looked at again a little later.
"""

import contextlib
import json
import mmap
import os
import pathlib
import random
import select
import signal
import struct
import time

import small_data
from dlrun_job import expect, job_over, wait_until

PHASES = ("start", "data", "compute", "push", "snapshot", "evaluation")
WORKERS, PS_SHARDS, SLOTS, MICROBATCH = 4, 2, 8, 64
HIDDEN = 1024  # a slot takes some milliseconds, a snapshot too
VALIDATION_RECORDS = 3001

LANE = struct.Struct("<QQIII4x")  # lane_memory of actors/common/progress_word.cpp: two of them
IN_SLOT = 1
FUTEX = "202"  # the system call in which a thread of a task_thread waits for work
WORD = "/memfd:dlrun:progress"
LOOK_AGAIN_S, FIND_S = 0.003, 0.05
STANDS_WITHIN_S = 10
LEFT_WITHIN_S = 10  # from the end of a process to the event that says so
FIRST_START_S = 0.1


def make_spec(train, validation, *, epochs, log, grace_s=30):
    """A job with every phase in it again and again: records are changed as they are read, each 40th version is evaluated."""
    spec = small_data.make_spec("mlp_dropout", train, epochs=epochs, workers=WORKERS, ps_shards=PS_SHARDS, microbatches_per_step=SLOTS)
    spec["model"]["layers"][1] = {"linear": {"out_features": HIDDEN}}
    spec["data"]["train"]["augment"] = {"random_crop": {"padding": 2}, "horizontal_flip": {}}
    spec["data"]["validation"] = validation
    spec["train"].update(microbatch_size=MICROBATCH, evaluate_every="40 steps")
    spec["cluster"].update(leave_grace_s=grace_s, restart={"intensity": 0, "period_s": 60})
    spec["durability"] = {"log": log, "max_recovery": "10ms"}
    spec["observability"] = {"log_format": "json"}
    return spec


@contextlib.contextmanager
def standing_still(pid):
    """Within, no thread of the process runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: stands_still(pid), f"process {pid} stands still", STANDS_WITHIN_S, poll_s=0)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def stands_still(pid):
    states = [pathlib.Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()[0]
              for thread in os.listdir(f"/proc/{pid}/task")]
    return all(state in "TZX" for state in states)


def evaluates(pid):
    """Whether a worker is at work on an evaluation."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        folder = pathlib.Path(f"/proc/{pid}/task/{thread}")
        if (folder / "comm").read_text().strip() == "evaluation":
            return (folder / "syscall").read_text().split()[0] != FUTEX
    return False


class watched_worker:
    """A worker's process, seen from outside. Errors of the OS: it has ended."""

    def __init__(self, pid, sizes):
        """@param sizes of logs, before it began"""
        self.pid, self.descriptor = pid, os.pidfd_open(pid)
        self.log = pathlib.Path(os.readlink(f"/proc/{pid}/fd/1"))
        self.log_begin = sizes.get(self.log, 0)
        self.word, self.leased = None, False

    def close(self):
        os.close(self.descriptor)
        if self.word:
            self.word.close()

    def lanes(self):
        """Whether it is in a slot with its computing, and with its reading; nothing at a moment at which it writes that down."""
        if self.word is None:
            links = {name: os.readlink(f"/proc/{self.pid}/fd/{name}") for name in os.listdir(f"/proc/{self.pid}/fd")}
            number = next(name for name, link in links.items() if link.startswith(WORD))
            with open(f"/proc/{self.pid}/fd/{number}", "rb") as file:
                self.word = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
        lanes = [LANE.unpack_from(self.word, at * LANE.size) for at in (0, 1)]
        return None if any(sequence % 2 for sequence, *_ in lanes) else [bool(lane[4] & IN_SLOT) for lane in lanes]

    def is_in(self, phase):
        """Of one that stands still. It may be in several; in `push` its gradients alone can keep it."""
        if phase == "evaluation":
            return evaluates(self.pid)
        lanes = self.lanes()
        return lanes is not None and {"compute": lanes == [True, False], "data": lanes[1], "push": lanes == [False, False]}[phase]

    def said(self, event):
        """Its log lines of that event since it is watched."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            file.seek(self.log_begin)
            lines = [line for line in file if line.startswith("{") and line.endswith("}\n")]
        return [one for one in map(json.loads, lines) if one["event"] == event]

    def has_lease(self):
        self.leased = self.leased or bool(self.said("lease"))
        return self.leased

    def kept(self):
        """Gradients that were not committed yet when it heard that it is to leave."""
        told = self.said("leaving")
        return int(told[0]["text"].split()[1]) if told else 0

    def ask_to_leave(self):
        signal.pidfd_send_signal(self.descriptor, signal.SIGTERM)

    def wait_end(self, patience_s):
        """@returns whether it ended."""
        return bool(select.select([self.descriptor], [], [], patience_s)[0])


class departure:
    """One SIGTERM: where the worker was, and how long it took to be gone."""

    def __init__(self, phase, seconds, kept):
        self.phase, self.ms, self.kept = phase, seconds * 1000, kept


class leaving_workers:
    """Workers of a running job that have a SIGTERM one after the other. All calls end with job_over when the job does."""

    def __init__(self, job, hosts, seed, grace_s):
        self.job, self.hosts, self.source, self.grace_s = job, hosts, random.Random(seed), grace_s
        self.asked, self.start_s = 0, FIRST_START_S
        self.workers = {}  # pid -> watched_worker
        self.known, self.log_sizes = set(), {}  # processes, and what their logs held, when all were there

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.workers.values():
            one.close()

    # ---- who is there

    def find(self):
        """Workers are the only processes with a word of progress."""
        found = set()
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and int(name) != self.job.root.pid and self.is_worker(name):
                    found.add(int(name))
        return found

    def is_worker(self, pid):
        return (b"--progress-fd" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                and os.readlink(f"/proc/{pid}/exe") == self.job.program and self.is_of_this_job(pid))

    def is_of_this_job(self, pid):
        log = os.readlink(f"/proc/{pid}/fd/1")
        return any(log.startswith(f"{folder}/") for folder in (self.job.run_dir, self.hosts.folder))

    def all_there(self):
        """Waits until every worker has a lease. @returns them"""
        wait_until(self.have_leases, "all workers are there", poll_s=FIND_S)
        self.known = set(self.workers)
        self.log_sizes = self.look_at_logs()
        return list(self.workers.values())

    def have_leases(self):
        self.expect_not_over()
        pids = self.find()
        for pid in set(self.workers) - pids:
            self.workers.pop(pid).close()
        for pid in pids - set(self.workers):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                self.workers[pid] = watched_worker(pid, self.log_sizes)
        return len(self.workers) == WORKERS and all(one.has_lease() for one in self.workers.values())

    def look_at_logs(self):
        return {file: file.stat().st_size for folder in self.run_folders() for file in folder.glob("logs/worker-*.log")}

    def run_folders(self):
        return self.hosts.run_folders(self.job.run_dir)

    # ---- a phase

    def hit(self, phase):
        """@returns the departure of a worker that was in it, or None when nobody was to be found there"""
        workers = self.all_there()
        found = self.ask_in_snapshot(workers) if phase == "snapshot" else self.ask_in(phase, workers)
        return self.see_off(phase, *found) if found else None

    def ask_in(self, phase, workers, tries=2000):
        for _ in range(tries):
            one = self.source.choice(workers)
            with self.or_over(), standing_still(one.pid):
                if one.is_in(phase):
                    one.ask_to_leave()
                    return one, time.monotonic()
            time.sleep(self.source.uniform(0, LOOK_AGAIN_S))
        return None

    def ask_in_snapshot(self, workers, tries=20000):
        """While a PS shard writes one: it stands still with a file that it has not finished."""
        shards = self.stores()
        for _ in range(tries):
            with self.or_over():
                for pid, folder in shards:
                    if not is_written(folder):
                        continue
                    with standing_still(pid):
                        if is_written(folder):
                            one = self.source.choice(workers)
                            one.ask_to_leave()
                            return one, time.monotonic()
        return None

    def stores(self):
        """(process, folder of its snapshots) of each PS shard."""
        status = self.job.wait_for(lambda status: True, "it answers")
        shards = [(role["pid"], role["index"]) for role in status["roles"] if role["role"] == "ps_shard"]
        return [(pid, folder) for pid, index in shards
                for folder in (run / f"ps_shard-{index}" / "snapshots" for run in self.run_folders()) if folder.is_dir()]

    def hit_start(self):
        """After a departure: the one that comes in its place has a SIGTERM before it has joined.
        @returns its departure; None when it had joined before it was looked at"""
        newcomer = None
        while newcomer is None:
            self.expect_not_over()
            newcomer = next(iter(self.find() - self.known), None)
        delay = self.source.uniform(0, self.start_s)
        with self.or_over():
            one = watched_worker(newcomer, self.log_sizes)
            self.workers[newcomer] = one
            time.sleep(delay)
            with standing_still(newcomer):
                starts = not one.said("joined")
                if starts:
                    one.ask_to_leave()
                    asked = time.monotonic()
        self.start_s *= 1.1 if starts else 0.9  # so that the moments are spread over all of a start
        return self.see_off("start", one, asked) if starts else None

    def see_off(self, phase, one, asked):
        """Waits until it is gone and the root says that it has left. @returns how that was"""
        self.asked += 1
        gone = one.wait_end(self.grace_s)
        seconds = time.monotonic() - asked
        self.expect_not_over()
        expect(gone, f"a worker that had a SIGTERM in phase {phase} is there after {self.grace_s} s\n{self.job.describe()}")
        wait_until(self.is_told, f"the root says that {self.asked} workers have left", LEFT_WITHIN_S)
        return departure(phase, seconds, one.kept())

    def is_told(self):
        if len(self.job.events("worker-left")) >= self.asked:
            return True
        self.expect_not_over()
        return False

    def expect_not_over(self):
        if self.job.root.poll() is not None:
            raise job_over(f"the job ended with {self.job.root.returncode}")

    @contextlib.contextmanager
    def or_over(self):
        """A process that is looked at may be gone because the job is."""
        try:
            yield
        except (OSError, StopIteration) as gone:
            wait_until(lambda: self.job.root.poll() is not None, f"the job is over: {gone}")
            raise job_over("it is over") from gone


def is_written(folder):
    return any(name.endswith(".snap.tmp") for name in os.listdir(folder))
