"""Wrong inputs, carried out: are they refused, cleanly, and is nothing left behind?

One list for bad_input_test and for scripts/acceptance/bad_input. A case makes its files in a folder of its own and says
which commands must be refused: exit code 2, one message, nothing left behind.
"""

import dataclasses
import os
import re
import shutil
import subprocess
import time

import bad_inputs_data
import bad_inputs_folders
import bad_inputs_hosts
import bad_inputs_spec
import bad_inputs_tables
import bad_inputs_weights
import dlrun_job
from bad_input_case import CASES, workplace

LISTS = (bad_inputs_spec, bad_inputs_data, bad_inputs_tables, bad_inputs_weights, bad_inputs_folders, bad_inputs_hosts)
BAD_USAGE = 2
LINES_MAX = 3
TIMEOUT_S = 60
NOBODY = 65534
INTERNAL = re.compile(r"what\(\)|terminate called|Traceback|Sanitizer|check failed")
# How soon each kind of mistake must be told. A "bomb" is as large as a job file may be: it takes
# reading.
MS_MAX = {"spec": 200, "bomb": 1000, "data": 2000, "folder": 200}
ATTEMPTS = 3  # at being so soon: others may use the machine


@dataclasses.dataclass
class refusal:
    """What a command came to. `left`: files that were made or changed, and processes."""

    command: tuple
    code: int
    stdout: str
    stderr: str
    ms: float
    left: list

    def problems(self, one):
        """Everything that makes it no clean refusal of this case, but for the time it took."""
        if self.code != BAD_USAGE:
            yield f"exit code {self.code}"
        if self.stdout:
            yield f"says on stdout: {self.stdout.strip()}"
        lines = self.stderr.splitlines()
        if not self.stderr.startswith("dlrun: ") or self.stderr.count("dlrun: ") != 1 or len(lines) > LINES_MAX:
            yield f"not one message, but {len(lines)} lines: {self.stderr.strip()}"
        if INTERNAL.search(self.stderr):
            yield f"tells internals: {self.stderr.strip()}"
        for word in one.words:
            if word not in self.stderr:
                yield f"does not name '{word}': {self.stderr.strip()}"
        if self.left:
            yield f"leaves behind {', '.join(self.left)}"


def contents(folder):
    """Everything in it: path -> what changes when it is written to."""
    found = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_mtime_ns if path.is_file() else 0,
                                                facts.st_size if path.is_file() else 0)
    return found


def processes_of(session):
    """What still runs of a session that began with our process."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    facts = {pid: dlrun_job.stat_fields(pid) for pid in pids}
    return [f"process {pid}" for pid, one in facts.items() if one and one["session"] == session and one["state"] not in "ZX"]


def unprivileged(program, folder):
    """The program where nobody may run it, and how to: as root, since root may write everywhere."""
    if os.geteuid() != 0:
        return program, {}
    folder.chmod(0o755)
    copy = shutil.copy(program, folder / "dlrun")
    return copy, {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def refusal_of(program, command, folder, identity):
    """Runs a command, and looks at what it leaves."""
    before, begin = contents(folder), time.monotonic()
    process = subprocess.Popen([program, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, cwd=folder, start_new_session=True, **identity)
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
    ms, after = (time.monotonic() - begin) * 1000, contents(folder)
    left = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return refusal(command, process.returncode, stdout, stderr, ms, left + processes_of(process.pid))


def carry_out(program, one, folder, attempts=ATTEMPTS):
    """Runs the commands of a case in an empty folder, each up to so many times while it is slow. @returns a refusal for each"""
    at, refusals = workplace(folder), []
    commands = one.make(at)
    program, identity = unprivileged(program, at.folder) if one.as_nobody else (program, {})
    for command in commands:
        for _ in range(attempts):
            found = refusal_of(program, command, at.folder, identity)
            if found.ms <= MS_MAX[one.kind] or found.left:
                break
        refusals.append(found)
    return refusals
