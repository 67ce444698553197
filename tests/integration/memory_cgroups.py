"""Limits of memory, as a kubelet and a container runtime set them: each container is in a memory cgroup of its own, of version 1 or 2.

What of it the kernel kills for its memory takes the whole container along, as where a kubelet sets memory.oom.group. Cgroups of version 1
do not have that: here it is done by who watches them.
"""

import contextlib
import os
import pathlib
import shlex
import signal
import threading
import time

from waiting import POLL_S, wait_until

CGROUPS = pathlib.Path("/sys/fs/cgroup")
KILLED_WITHIN_S = 5  # from when the kernel says that memory is used up, unless it found some after all


class no_cgroups(Exception):
    """None can be made here, and why."""


def own_paths():
    """Controller -> path of the cgroup of this process; "" is that of version 2."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for one in controllers.split(","):
            yield one, path.lstrip("/")


def parent_v2(path):
    """The nearest cgroup, from that of this process upwards, in which others may have limits of memory."""
    own = CGROUPS / path
    for one in (own, *own.parents):
        with contextlib.suppress(OSError):
            if "memory" in (one / "cgroup.subtree_control").read_text().split():
                return one
        if one == CGROUPS:
            break
    raise no_cgroups(f"no cgroup above {own} gives others the controller of memory")


def parent():
    """@returns folder of the cgroup that is to have those of containers, and the version"""
    paths = dict(own_paths())
    if "memory" in paths and (CGROUPS / "memory").is_dir():
        return CGROUPS / "memory" / paths["memory"], 1
    if "" in paths:
        return parent_v2(paths[""]), 2
    raise no_cgroups("there is no controller of memory")


def counted(file, name):
    """A count in a file of cgroups."""
    return next((int(line.split()[1]) for line in file.read_text().splitlines() if line.split()[0] == name), 0)


class container_cgroup:
    """Of one container, from its start to its end."""

    def __init__(self, folder, version, limit):
        self.folder, self.version = folder, version
        folder.mkdir()
        self.limit_file = folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")
        self.limit_file.write_text(str(limit))
        if version == 2:
            (folder / "memory.oom.group").write_text("1")
            with contextlib.suppress(OSError):  # where nothing is swapped there may be no such file
                (folder / "memory.swap.max").write_text("0")

    def within(self, words):
        """The words that run others in it."""
        return ["sh", "-c", f'echo $$ > {shlex.quote(str(self.folder))}/cgroup.procs && exec "$@"', "sh", *words]

    def limit(self):
        """That the kernel holds it to, in bytes."""
        return int(self.limit_file.read_text())

    def kills(self):
        """How many processes of it the kernel has killed for its memory."""
        return counted(self.folder / ("memory.oom_control" if self.version == 1 else "memory.events"), "oom_kill")

    def processes(self):
        with contextlib.suppress(OSError):  # of one that is removed
            return [int(pid) for pid in (self.folder / "cgroup.procs").read_text().split()]
        return []

    def kill(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self):
        """With what is left in it, such as who executes something there and has not heard of its end."""
        def is_gone():
            self.kill()
            with contextlib.suppress(OSError):
                self.folder.rmdir()
            return not self.folder.exists()

        wait_until(is_gone, f"nothing runs in {self.folder}")


@contextlib.contextmanager
def killed_whole(cgroup):
    """Meanwhile all of it is killed when the kernel kills something in it for its memory."""
    if cgroup.version == 2:  # where the kernel does that
        yield
        return
    told, is_over = os.eventfd(0), threading.Event()

    def watch():
        while not is_over.is_set():
            os.eventfd_read(told)
            until = time.monotonic() + KILLED_WITHIN_S
            while not is_over.is_set() and time.monotonic() < until:
                if cgroup.kills():
                    cgroup.kill()
                    return
                time.sleep(POLL_S)  # between two looks: it is told before it kills

    with open(cgroup.folder / "memory.oom_control", "rb") as file:
        (cgroup.folder / "cgroup.event_control").write_text(f"{told} {file.fileno()}")
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        os.eventfd_write(told, 1)
        thread.join()
        os.close(told)


class memory_cgroups:
    """In one, which is gone at the end. Raises no_cgroups where none can be made."""

    def __init__(self, name):
        self.made, self.lock = 0, threading.Lock()
        above, self.version = parent()
        self.folder = above / name
        try:
            self.folder.mkdir()
            if self.version == 2:
                (self.folder / "cgroup.subtree_control").write_text("+memory")
        except OSError as why:
            self.remove()
            raise no_cgroups(str(why)) from why

    def remove(self):
        with contextlib.suppress(FileNotFoundError):
            self.folder.rmdir()

    def make(self, name, limit):
        """@param limit in bytes"""
        with self.lock:
            self.made += 1
            return container_cgroup(self.folder / f"{name}.{self.made}", self.version, limit)
