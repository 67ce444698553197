"""Jobs that keep going without the command that started them, and who looks at a job: `train --detach`, `attach`."""

import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from dlrun_job import PATIENCE_S, POLL_S, expect, running_job, wait_until

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """Processes whose parents have ended become children of this one: it can wait for them, and learns how they ended."""
    expect(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "this process adopts others")


class adopted_process:
    """A process that another has started, which has ended: as subprocess.Popen."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout=PATIENCE_S):
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(POLL_S)
        return self.returncode

    def send_signal(self, which):
        if self.poll() is None:
            os.kill(self.pid, which)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class detached_job(running_job):
    """A job whose command has returned. Its root is the child of the test from then on."""

    def begin(self):
        adopt_orphans()
        self.command = subprocess.run([*self.within, self.program, *self.arguments, "--detach"], stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=PATIENCE_S)
        expect(self.command.returncode == 0, f"exit code {self.command.returncode}\n{self.command.stderr}")
        self.root = adopted_process(int(re.search(r"as process (\d+)", self.command.stdout)[1]))

    def output(self):
        log = self.run_dir / "logs" / "root.log"
        return self.command.stdout + (log.read_text(errors="replace") if log.exists() else "")


class attachment:
    """A `dlrun attach` that runs."""

    def __init__(self, job, *options):
        self.shown, self.said = (tempfile.TemporaryFile(dir=job.run_dir.parent) for _ in range(2))
        self.process = subprocess.Popen([*job.within, job.program, "attach", str(job.run_dir), *options],
                                        stdin=subprocess.DEVNULL, stdout=self.shown, stderr=self.said, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for file in (self.shown, self.said):
            file.close()

    def output(self):
        return self.read(self.shown)

    def complaints(self):
        return self.read(self.said)

    @staticmethod
    def read(file):
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()

    def lines(self):
        """Of --json: those that are whole."""
        return [json.loads(line) for line in self.output().split("\n")[:-1]]

    def wait_for(self, text):
        def shown():
            over = self.process.poll() is not None
            if text in self.output():
                return True
            expect(not over, f"attach ended with {self.process.returncode} before it showed {text}\n{self.complaints()}")
            return False

        wait_until(shown, f"'{text}' is shown")

    def wait_until_it_handles(self, which):
        """That signal: before, it would be ended by it."""
        def handles():
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
            [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
            return int(caught, 16) >> (which - 1) & 1

        wait_until(handles, f"attach handles {which}")

    def interrupt(self, which=signal.SIGINT):
        """@returns its exit code."""
        self.process.send_signal(which)
        return self.wait()

    def wait(self):
        return self.process.wait(PATIENCE_S)


def write_absent_hosts(path, folder):
    """A list of this host and of one whose agent never says a word, but ends with its root."""
    start = ["/bin/sh", "-c", "exec tail --pid=$PPID -f /dev/null", "{host}"]
    hosts = [{"name": "here", "address": "127.0.0.1"},
             {"name": "there", "address": "127.0.0.2", "folder": str(folder / "there")}]
    path.write_text(json.dumps({"start": start, "hosts": hosts}))
    return path


def wait_for_absent_host(run_dir):
    """Returns when the root waits for that host: all else was checked."""
    wait_until((run_dir / "logs" / "host-there.log").exists, "the root waits for its hosts")
