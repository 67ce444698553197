"""One dlrun job as its user sees it: a process, a run folder, `dlrun status`. Starts it, watches it, breaks it, cleans up.

Nothing here sleeps in the hope that something has happened: every wait is for a condition and has a deadline.
Only processes that belong to the job are ever signalled.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from job_hold import job_hold
from told_events import read_events
from waiting import PATIENCE_S, POLL_S, completed_early, expect, expectation_failed, job_over, promptly, wait_until

WATCH_S = 0.1
GONE_PATIENCE_S = 15  # how soon all are gone is root_end_test's to hold: it runs alone
HELD_POLL_S = 0.002
BEGUN_AT_MOST = 5  # times
COMPLETED = (0, 3)  # exit codes: with all slots, or without some that were left out
OTHER_SEED = 2**31 - 1  # of no test
NOT_READY = ("starting", "down")
ANSWER_S, ANSWER_BYTES_MAX, NO_ANSWER = 2, 1 << 20, "\0"  # begins what a root says that ends, instead of an answer


def until_held(run):
    """@returns what `run()` does, which holds one job several times: all of it again when one was completed too early."""
    for _ in range(BEGUN_AT_MOST - 1):
        with contextlib.suppress(completed_early):
            return run()
    return run()


def now_us():
    """The clock of events.jsonl."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def free_port():
    """A TCP port of loopback on which nobody listens."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def stat_fields(pid):
    """State, parent, session, terminal (0: none) and start time of a process, or None when there is none."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return {"state": fields[0], "parent": int(fields[1]), "session": int(fields[3]), "terminal": int(fields[4]), "start": fields[19]}


def output_of(pid):
    """Where the output of a process goes, with which a role names itself, and what it complains of."""
    found = []
    for stream in (1, 2):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/{pid}/fd/{stream}"))
    return found


def writes_into(pid, folder):
    """Whether the process's output goes into a file of `folder`."""
    return any(file.startswith(f"{folder}/") for file in output_of(pid))


def copy_folder(run_dir, target):
    """A copy of a run folder, without the socket that a root leaves there that was killed."""
    shutil.copytree(run_dir, target, ignore=shutil.ignore_patterns("control.sock"))


def status_of(run_dir, request=b"status"):
    """What `dlrun status --json` prints of a job that runs, asked of its root without that command: a process takes as long to
    start as a short job to make many steps. "" when nobody answers. So of any other request."""
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
        asker.settimeout(ANSWER_S)
        name = json.loads((run_dir / "agent.json").read_text())["socket"]
        folder = os.open(run_dir, os.O_PATH | os.O_DIRECTORY)  # its path may be longer than that of a socket may be
        try:
            asker.connect(f"\0{name[1:]}" if name.startswith("@") else f"/proc/self/fd/{folder}/{name}")
        finally:
            os.close(folder)
        asker.send(request)
        answer = asker.recv(ANSWER_BYTES_MAX).decode()
        return "" if answer.startswith(NO_ANSWER) else answer
    return ""


def option(name, values):
    """An option that may be repeated, once for each value."""
    return [word for value in values for word in (name, value)]


class running_job:
    """A `dlrun train` or `resume` of its own session, with everything that it started."""

    def __init__(self, program, run_dir, arguments, output_file=None, within=()):
        """@param within words of a command that runs another where the job is, as in another network namespace"""
        self.program = os.path.realpath(program)
        self.within = within
        self.run_dir = pathlib.Path(run_dir).resolve()
        self.output_file = output_file or self.run_dir.with_name(self.run_dir.name + ".out")
        self.seen = {}  # pid -> start time, of every process that `status` named
        self.stopped = set()
        self.folders_elsewhere = []  # of the run, on other hosts
        self.start_root(arguments)

    def start_root(self, arguments):
        self.arguments, self.is_touched = arguments, False
        self.folder_before = self.output_file.with_suffix(".before")  # a copy of the run folder, where there is one
        shutil.rmtree(self.folder_before, ignore_errors=True)
        if self.run_dir.exists():
            copy_folder(self.run_dir, self.folder_before)
        self.begin()

    def begin(self):
        with open(self.output_file, "ab") as output:
            self.root = subprocess.Popen([*self.within, self.program, *self.arguments], stdin=subprocess.DEVNULL, stdout=output,
                                         stderr=subprocess.STDOUT, start_new_session=True)

    def begin_again(self):
        """The same command, from the run folder as it was; where there was none, no host has one of that run."""
        self.kill_everything()
        shutil.rmtree(self.run_dir)
        if self.folder_before.exists():
            copy_folder(self.folder_before, self.run_dir)
        else:
            for folder in self.folders_elsewhere:
                shutil.rmtree(folder, ignore_errors=True)
        self.is_touched = False
        self.begin()

    def resume(self, overrides=(), options=()):
        """`dlrun resume` on the run folder, after everything has ended."""
        self.start_root(["resume", str(self.run_dir), *option("--set", overrides), *options])

    def kill_everything(self):
        """SIGKILL to the root: all roles go with it. Returns when nothing runs."""
        self.root.kill()
        self.root.wait()
        self.expect_nothing_left()

    def kill_everything_at_step(self, step):
        """The same at `step` or a little later: the job is held until then. What it is held with is as old as its last report: where
        it turns out to have been trained to its end meanwhile, it is begun again.
        @returns the step that was on the disk of all PS shards: nothing below is lost."""
        for begun in range(1, BEGUN_AT_MOST + 1):
            was_touched = self.is_touched
            with self.held_from_step(step) as status:
                self.kill_everything()
            if not self.is_completed():
                return status["durable_step"]
            if was_touched or begun == BEGUN_AT_MOST:
                raise completed_early(f"it was complete in its journal before: killed at step {step}\n{self.output()}")
            self.begin_again()

    def is_completed(self):
        """Whether a run that is over was trained to its end: its journal knows, and any change of such a run is refused for that."""
        return "is completed" in self.ask("resume", "--set", f"train.seed={OTHER_SEED}")[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends what is left, also when a test fails half way."""
        for pid in list(self.stopped):
            self.send_signal(pid, signal.SIGCONT)
        if self.root.poll() is None:
            self.root.kill()
        self.root.wait()
        for pid in self.left_processes():
            self.send_signal(pid, signal.SIGKILL)

    # ---- what it says

    def output(self):
        return self.output_file.read_text(errors="replace")

    def ask_status(self):
        """What `dlrun status --json` prints, or "" while the job does not answer."""
        if self.root.poll() is None:
            return status_of(self.run_dir)
        code, answer, _ = self.ask("status", "--json")
        return answer if code == 0 else ""

    def try_status(self):
        """What that says, or None."""
        answer = self.ask_status()
        if not answer:
            return None
        status = json.loads(answer)
        for role in status["roles"]:
            found = stat_fields(role["pid"]) if role["pid"] else None
            if found:
                self.seen.setdefault(role["pid"], found["start"])
        return status

    def status(self):
        """The same, waited for: on a busy machine one look may find no answer."""
        return self.wait_for(lambda _: True, "its root answers")

    def ask(self, verb, *options):
        """`dlrun VERB` on the run folder. @returns exit code, output, complaints"""
        answer = subprocess.run([*self.within, self.program, verb, str(self.run_dir), *options], capture_output=True, text=True,
                                timeout=PATIENCE_S)
        return answer.returncode, answer.stdout, answer.stderr

    def wait_for(self, condition, what, patience_s=PATIENCE_S, poll_s=POLL_S):
        """Waits until `condition(status)` holds. @returns that status."""

        def holds():
            status = self.try_status()
            if status is not None and condition(status):
                return status
            if self.root.poll() is not None:
                raise job_over(f"the job ended with {self.root.returncode} before: {what}\n{self.output()}")
            return None

        return wait_until(holds, what, patience_s, poll_s)

    def wait_for_step(self, step, patience_s=PATIENCE_S):
        """Waits for `step` and then lets the job go on. @returns the status at that moment."""
        with self.held_from_step(step, patience_s=patience_s) as status:
            return status

    def wait_until_all_run(self):
        return self.wait_for(all_run, "all roles run")

    @contextlib.contextmanager
    def held_from_step(self, step, condition=lambda status: True, patience_s=PATIENCE_S, alive=False):
        """At `step` or a little later, when `condition(status)` holds too, the job is held: within, no step is committed. What takes
        longer than 10 s ends that process: `alive` tells so as completed_early.

        Its first PS shard is stopped (SIGSTOP) whenever the status is looked at, so that the job goes on only while nobody
        looks: however long a look takes, a short job is not over meanwhile. Where the processor is withheld from us in
        between, it may be: if nothing was done to it yet, it is begun again. One whose PS shards run in the root's process
        cannot be held."""
        for begun in range(1, BEGUN_AT_MOST + 1):
            try:
                status, hold = self.hold_from_step(step, condition, patience_s)
                break
            except job_over as over:
                if self.root.poll() not in (None, *COMPLETED):
                    raise
                if self.is_touched or begun == BEGUN_AT_MOST:
                    raise completed_early(str(over)) from over
                self.begin_again()
        self.is_touched = True
        try:
            with self.over_is_too_early():  # what it was held with is as old as its last report
                yield status
        finally:
            hold.let_go()
            if alive and self.root.poll() is None and hold.was_killed():
                raise completed_early(f"it was held for too long\n{self.output()}")

    @contextlib.contextmanager
    def over_is_too_early(self):
        """Within, an end of the job is told as completed_early if it was trained to its end."""
        try:
            yield
        except job_over as over:
            if self.root.poll() in COMPLETED:
                raise completed_early(str(over)) from over
            raise

    def hold_from_step(self, step, condition=lambda status: True, patience_s=PATIENCE_S):
        """@returns the status with which the job is held, and the hold."""
        hold = job_hold(self, step, condition)
        with promptly():
            return self.wait_for(hold.look, f"step {step}", patience_s, HELD_POLL_S), hold

    def holder_in(self, status):
        """The process to be stopped so that the job is held, or None."""
        pid = pid_of(status, "ps_shard")
        return pid if pid != self.root.pid else None

    def is_ready(self, status):
        pid = pid_of(status, "ps_shard")
        return bool(pid) and all(role["state"] not in NOT_READY for role in status["roles"] if role["pid"] == pid)

    def wait_for_output(self, text, patience_s=PATIENCE_S, meanwhile=lambda: None):
        """Waits until the job has said `text`, and calls `meanwhile` before each look. Also for a job that can answer nothing."""

        def said():
            meanwhile()
            if text in self.output():
                return True
            if self.root.poll() is not None and text not in self.output():
                raise job_over(f"the job ended with {self.root.returncode} before it said {text}\n{self.output()}")
            return False

        wait_until(said, f"'{text}' is said", patience_s)

    def contents(self):
        """What each file of the run folder holds, as a digest. Left out is run.lock: it names who looked last."""
        files = [file for file in self.run_dir.rglob("*") if file.is_file() and file.name != "run.lock"]
        return {str(file.relative_to(self.run_dir)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    def report(self):
        return json.loads((self.run_dir / "report.json").read_text())

    def events(self, name=None):
        return read_events(self.run_dir, name)

    def troubles(self):
        """The events so far, but for stalls: a busy machine lets a step take longer than a second."""
        return [event for event in self.events() if event["event"] not in ("stalled", "stall-over")]

    def wait_for_exits(self, count):
        wait_until(lambda: len(self.events("role-exited")) >= count, f"{count} exits are told")

    # ---- its processes

    def is_ours(self, pid):
        """Whether the process runs this job: our program, in our session or with its output in our run folder."""
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)") != self.program:
                return False
            fields = stat_fields(pid)
            if fields is None or fields["state"] in "ZX":
                return False
            named = self.seen.get(pid) == fields["start"]
            return named or fields["session"] == self.root.pid or writes_into(pid, self.run_dir)
        return False

    def left_processes(self):
        """Every process of the job that runs now."""
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and self.is_ours(int(name))]

    def describe(self):
        """For messages: what the job said, its status and the state of each of its processes (R, S, T = stopped, ...)."""
        states = {pid: (stat_fields(pid) or {}).get("state") for pid in self.left_processes()}
        return f"processes {states}\nstatus {self.try_status()}\n{self.output()}"

    def expect_nothing_left(self, within_s=GONE_PATIENCE_S):
        deadline = time.monotonic() + within_s
        while left := self.left_processes():
            expect(time.monotonic() < deadline, f"processes are left {within_s} s after the end: {({pid: output_of(pid) for pid in left})}")
            time.sleep(POLL_S)

    def send_signal(self, pid, which):
        """@returns whether the process was there and is one of the job's."""
        if not self.is_ours(pid):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, which)
            (self.stopped.add if which == signal.SIGSTOP else self.stopped.discard)(pid)
            return True
        return False

    def wait_for_processes(self, roles):
        """Waits until each (role, index) is a process that lives: for a moment `status` still names those that have just
        died. @returns their pids."""
        def all_live(status):
            pids = [pid_of(status, role, index) for role, index in roles]
            return all(pid and self.is_ours(pid) for pid in pids)

        status = self.wait_for(all_live, f"{roles} run")
        return [pid_of(status, role, index) for role, index in roles]

    def kill_together(self, roles):
        """SIGKILL to each (role, index), one right after the other. @returns how many were there to be killed."""
        return self.kill_pids(self.wait_for_processes(roles))

    def kill_pids(self, pids):
        """SIGKILL to processes that `status` named. @returns how many were there to be killed."""
        return sum(self.send_signal(pid, signal.SIGKILL) for pid in pids)

    @contextlib.contextmanager
    def moment_at_step(self, step, delay_s=0, prepare=lambda status: None):
        """A moment at `step`: within, the job is held there, so that it cannot be over before; or `delay_s` after it was let go
        there, which a short job may not live to see. Gives what `prepare(status)` returned while it was held."""
        with self.held_from_step(step) as status:
            prepared = prepare(status)
            if not delay_s:
                yield prepared
                return
            moment = time.monotonic() + delay_s
        with promptly():
            time.sleep(max(0, moment - time.monotonic()))
            yield prepared

    def kill_at_step(self, step, roles, delay_s=0, look=lambda status: None):
        """SIGKILL to each (role, index) at that moment. `look` gets the status. @returns how many were killed."""
        def find(status):
            look(status)
            return self.wait_for_processes(roles)  # the end of a short job may be nearer than another look

        with self.moment_at_step(step, delay_s, find) as pids:
            return self.kill_pids(pids)

    def kill(self, role, index=0, which=signal.SIGKILL):
        """Signals a role's process. @returns its pid and the moment before, in microseconds."""
        [pid] = self.wait_for_processes([(role, index)])
        before, self.is_touched = now_us(), True
        expect(self.send_signal(pid, which), f"{role} {index} (process {pid}) is not there to be signalled")
        return pid, before

    def watch_exits(self, status, end, patience_s=PATIENCE_S):
        """Calls `end()`, waits until all processes of `status` are gone; the kernel tells in which order.

        @returns names such as "worker 1" in the order of their ends."""
        names = {}
        for role in status["roles"]:
            if role["pid"] and role["role"] != "data_dispatcher":
                names.setdefault(role["pid"], f"{role['role']} {role['index']}")
        descriptors = {os.pidfd_open(pid): name for pid, name in names.items()}
        order, deadline = [], time.monotonic() + patience_s
        with select.epoll() as poller:  # its list of what is ready is in the order in which it became so
            for descriptor in descriptors:
                poller.register(descriptor, select.EPOLLIN | select.EPOLLET)
            end()
            while len(order) < len(names) and time.monotonic() < deadline:
                for descriptor, _ in poller.poll(timeout=1):
                    if descriptors[descriptor] not in order:  # its parent's wait makes it ready once more
                        order.append(descriptors[descriptor])
        for descriptor in descriptors:
            os.close(descriptor)
        expect(len(order) == len(names), f"of {sorted(names.values())} ended only {order}")
        self.root.wait()
        return order

    def watch_until_end(self, look, patience_s=PATIENCE_S):
        """Calls `look(status)` now and then until the job has ended."""
        deadline = time.monotonic() + patience_s
        while self.root.poll() is None:
            if status := self.try_status():
                look(status)
            expect(time.monotonic() < deadline, f"the job did not end within {patience_s} s\n{self.describe()}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.root.wait(timeout=WATCH_S)

    def interrupt_again(self):
        """Ctrl-C until it is over: after a first one, the one that comes half a second later is meant."""
        wait_until(lambda: self.root.send_signal(signal.SIGINT) or self.root.poll() is not None, "it ends at once")

    def wait_end(self, patience_s=PATIENCE_S):
        """@returns the exit code of `dlrun train`."""
        try:
            return self.root.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            raise expectation_failed(f"the job did not end within {patience_s} s\n{self.describe()}") from None

    def expect_complete(self, patience_s=PATIENCE_S, may_redo=False, gone_within_s=GONE_PATIENCE_S):
        """Waits for the end and checks what every completed job promises. @returns its report."""
        code = self.wait_end(patience_s)
        expect(code == 0, f"exit code {code}\n{self.output()}")
        report = self.report()
        expect(report["status"] == "completed", f"status {report['status']}: {report['reason']}")
        for name in ("samples_missing", "samples_duplicated") + (() if may_redo else ("steps_redone",)):
            expect(report[name] == 0, f"{name} is {report[name]}\n{self.output()}")
        self.expect_nothing_left(gone_within_s)
        return report


def all_run(status):
    """Every role has a process and has given a sign of life, and steps have been committed."""
    return status["step"] > 0 and all(role["pid"] and role["state"] not in NOT_READY for role in status["roles"])


def has_workers(status, workers):
    """So many are there, and nobody is leaving."""
    return status.get("workers") == {"wanted": workers, "present": workers, "leaving": 0}


def pid_of(status, role, index=0):
    for entry in status["roles"]:
        if entry["role"] == role and entry["index"] == index and entry["pid"]:
            return entry["pid"]
    return None


def identities(status, kinds=("coordinator", "data_dispatcher", "ps_shard", "agent")):
    """Who runs: (role, index) -> (pid, incarnation)."""
    return {(one["role"], one["index"]): (one["pid"], one["incarnation"])
            for one in status["roles"] if one["role"] in kinds}


class job_bench:
    """A temporary folder in which jobs are written and run; removed at the end."""

    def __init__(self, program, parent=None):
        self.program = os.path.realpath(program)
        self.folder_owner = tempfile.TemporaryDirectory(prefix="dlrun-", dir=parent)
        self.folder = pathlib.Path(self.folder_owner.name).resolve()
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder_owner.cleanup()

    def new_run_dir(self):
        self.count += 1
        return self.folder / f"run{self.count}"

    def start(self, spec, overrides=(), parent=None, kind=running_job):
        """@param spec a dictionary, or the path of a job file; `parent`: of the run folder; `kind`: how it is started."""
        run_dir = self.new_run_dir()
        file, output = spec, run_dir.with_suffix(".out")
        if isinstance(spec, dict):
            file = run_dir.with_suffix(".yaml")
            file.write_text(json.dumps(spec))
        if parent:
            run_dir = pathlib.Path(parent) / run_dir.name
        arguments = ["train", str(file), "--run-dir", str(run_dir), *option("--set", overrides)]
        return kind(self.program, run_dir, arguments, output)

    def resume_copy(self, job, overrides=(), options=(), prepare=None):
        """A copy of a run folder, resumed there after `prepare(copy)`. Nothing of `job` runs meanwhile."""
        run_dir = self.new_run_dir()
        copy_folder(job.run_dir, run_dir)
        if prepare:
            prepare(run_dir)
        return running_job(self.program, run_dir,
                           ["resume", str(run_dir), *option("--set", overrides), *options])

    def complete(self, spec, overrides=(), patience_s=PATIENCE_S):
        """Runs an undisturbed job. @returns its report."""
        with self.start(spec, overrides) as job:
            return job.expect_complete(patience_s)
