"""Whoever is not a process of the job gets no word in: no network port is open, another user is refused, and so is who talks nonsense."""

import contextlib
import os
import pathlib
import random
import signal
import socket
import unittest

from bench_case import bench_case, main
from dlrun_job import all_run

ENDLESS = 100000
NOBODY = 65534
SESSIONS = 60  # with each socket of the job
LISTENS = 0x10000  # a flag in /proc/net/unix


def sockets_of(pid):
    """Inodes of the process's sockets."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    return found


def network_sockets():
    """Inodes of all sockets of the network namespace that are not Unix sockets."""
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        file = pathlib.Path("/proc/net", table)
        if file.exists():
            found.update(int(line.split()[9]) for line in file.read_text().splitlines()[1:])
    return found


def listening(inodes):
    """(type, abstract name) of those that listen."""
    found = []
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if len(fields) == 8 and int(fields[3], 16) & LISTENS and int(fields[6]) in inodes and fields[7].startswith("@"):
            found.append((int(fields[4], 16), "\0" + fields[7][1:]))
    return found


def talk(kind, name, words):
    """@returns how many bytes came back."""
    with socket.socket(socket.AF_UNIX, kind) as peer:
        peer.settimeout(10)
        try:
            peer.connect(name)
            peer.send(words)
            return len(peer.recv(4096))
        except OSError:
            return 0


def as_somebody_else(run):
    """What `run()`, a number, is for another user; in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        os.write(write, str(run()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return int(said)


class strangers(bench_case):
    def pids_in(self, job, status):
        return {role["pid"] for role in status["roles"]} | {job.root.pid}

    def all_pids(self, job):
        return self.pids_in(job, job.wait_until_all_run())

    def test_a_job_opens_no_network_port(self):
        with self.bench.start(self.spec(epochs=ENDLESS, workers=2)) as job:
            sockets = set().union(*(sockets_of(pid) for pid in self.all_pids(job)))
            self.assertTrue(sockets, "its processes talk over sockets")
            self.assertEqual(sockets & network_sockets(), set())
            job.root.send_signal(signal.SIGTERM)
            job.wait_end()

    def test_who_talks_nonsense_or_nothing_changes_nothing(self):
        spec = self.spec(epochs=30, workers=2)
        expected = self.undisturbed(spec)["parameters_sha256"]
        choose = random.Random(7)
        with self.bench.start(spec) as job, contextlib.ExitStack() as peers:
            with job.held_from_step(1, all_run) as status:
                doors = listening(set().union(*(sockets_of(pid) for pid in self.pids_in(job, status))))
                for kind, name in doors:
                    for i in range(SESSIONS):
                        peer = peers.enter_context(socket.socket(socket.AF_UNIX, kind))
                        peer.setblocking(False)
                        with contextlib.suppress(OSError):
                            peer.connect(name)
                            if i % 2:
                                peer.send(choose.randbytes(choose.choice((1, 24, 56, 300, 5000))))
            self.assertEqual(job.wait_end(), 0, job.output())
            self.assertEqual(job.report()["parameters_sha256"], expected)
            self.assertEqual(job.report()["recoveries"], [])

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_another_user_gets_not_one_byte(self):
        with self.bench.start(self.spec(epochs=ENDLESS, workers=2)) as job:
            pids = self.all_pids(job)
            doors = listening(set().union(*(sockets_of(pid) for pid in pids)))
            self.assertGreaterEqual(len(doors), len(pids), "each process can be reached by those of the job")
            greeting = b"dlch" + (1).to_bytes(4, "little") + bytes(48)
            said = as_somebody_else(lambda: sum(talk(kind, name, words) for kind, name in doors
                                                for words in (greeting, b"status", bytes(32))))
            self.assertEqual(said, 0)
            self.assertEqual(job.events("role-exited"), [])
            job.root.send_signal(signal.SIGTERM)
            job.wait_end()


if __name__ == "__main__":
    main()
