"""Strangers of a job on several hosts: who they are, what they say to its listeners, and what comes of it.

Of `hosts` (net_hosts) the last is the strangers'; the job has the others.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import time

import doors
import etcd_members
import stolen_papers
from dlrun_job import all_run, expect, expectation_failed, has_workers

KINDS = ("no_certificate", "self_signed", "other_authority", "expired", "wrong_role", "tls_1_2", "garbage", "huge_length", "slow_loris")
IMPERSONATED = (("coordinator", 0), ("data_dispatcher", 0), ("ps_shard", 0), ("ps_shard", 1), ("worker", 0), ("agent", 0), ("host_agent", 1))
FALSE_NAME = "URI:dlrun:job/1/role/worker/0/host/beta"
DATAGRAMS, UNIX_ROUNDS = 20, 3  # to each
STARTS_TRIED = 10
PROGRAM = pathlib.Path(__file__).with_name("hostile_peer.py")
HUGE = (bytes((22, 3, 1, 0xff, 0xff)),  # a record of TLS
        bytes((22, 3, 1, 0x0f, 0xa0, 1, 0xff, 0xff, 0xff)) + bytes(3996),  # a greeting of 16 MiB, the first record of it
        stolen_papers.HELLO_MAGIC + b"\xff" * 52, b"\xff" * 24)


def hexed(words):
    return [one.hex() for one in words]


def garbage(source):
    """What is no TLS: noise of any length, other protocols, greetings of the job without TLS, beats of nobody."""
    return [source.randbytes(size) for size in (1, 24, 56, 300, 5000)] + [
        b"GET / HTTP/1.1\r\nHost: alpha\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", doors.GREETING, b"dlth" + bytes(36), bytes(2000),
        b"dlb1" + source.randbytes(68), b"status"]


class target:
    """The job, its listeners, and what is taken from it."""

    def __init__(self, job, hosts, workers):
        self.job, self.hosts, self.workers = job, hosts, workers
        self.names = hosts.names[:-1]
        self.asked = 0  # workers, to leave

    def addresses(self):
        return [self.hosts.address(name) for name in self.names]

    def pids(self, names=None):
        """Of all processes of the job."""
        return {pid for name in names or self.names for pid in self.hosts.processes(name) if self.is_dlrun(pid)}

    def is_dlrun(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/exe") == self.job.program
        except OSError:
            return False

    def look_for(self, what, names=None):
        """@returns what `what(sockets, pid)` finds of each process, together"""
        return sorted({one for pid in self.pids(names) for one in what(doors.sockets_of(pid), pid)})

    def take_papers(self):
        """The last worker leaves. @returns what its successor is started with"""
        for _ in range(STARTS_TRIED):
            with stolen_papers.thief(self.job.program) as taker:
                self.job.kill("worker", self.workers - 1, signal.SIGTERM)
                self.asked += 1
                wait_for_one_more(self.job, self.asked)
                self.job.wait_for(lambda status: has_workers(status, self.workers) and all_run(status), "all are there")
            if found := [one for one in taker.taken if one.role == "worker" and one.certificate]:
                return found[-1]
        raise expectation_failed(f"no papers of a worker could be taken in {STARTS_TRIED} starts")

    def look(self):
        """@returns moment, step, and seconds of processor time that its processes have used"""
        before = time.monotonic()
        status = self.job.status()
        expect(status["status"] == "running", f"the job does not run\n{self.job.output()}")
        return (before + time.monotonic()) / 2, status["step"], sum(map(processor_seconds, self.pids()))

    def pace(self, wait):
        """While `wait()` does. @returns steps a second, and milliseconds of processor time a step"""
        begin, first, used = self.look()
        wait()
        end, last, used_then = self.look()
        return (last - first) / (end - begin), (used_then - used) * 1000 / max(1, last - first)


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_one_more(job, asked):
    job.wait_for(lambda status: len(job.events("worker-left")) >= asked, f"{asked} workers have left")


class strangers:
    """Programs on the last host, and on the others as another user."""

    def __init__(self, victim, folder, seed, nice=0):
        self.victim, self.folder, self.seed, self.nice = victim, folder, seed, nice
        self.source = random.Random(seed)
        self.own = etcd_members.own_authority(folder / "other-authority")
        self.garbage = hexed(garbage(self.source))

    def start(self, order, name=None):
        """@param name the host where it runs; default the strangers' own @returns the program, which has its order"""
        self.seed += 1
        words = [*self.victim.hosts.within(name or self.victim.hosts.names[-1]), "/usr/bin/python3", "-B", str(PROGRAM)]
        program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        program.stdin.write(json.dumps({"seed": self.seed, "nice": self.nice, **order}))
        program.stdin.close()
        return program

    @staticmethod
    def answer_of(program):
        with program:
            said = program.stdout.read()
        expect(program.returncode == 0, f"a stranger's program failed: exit code {program.returncode}")
        return json.loads(said)

    def ask(self, order, name=None):
        return self.answer_of(self.start(order, name))

    def own_certificate(self, name, by_authority):
        """Under a name of the job. @returns files"""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        if not certificate.exists():
            signer = ["-CA", str(self.own.certificate), "-CAkey", str(self.own.key)] if by_authority else []
            self.own.make(certificate, key, name, f"subjectAltName={FALSE_NAME}", "extendedKeyUsage=serverAuth,clientAuth", signer=signer)
        return certificate, key

    def ways(self, fresh, expired=None):
        """How each kind talks. @param fresh papers of a worker, expired: papers of which the certificate has"""
        honest = hexed([fresh.honest_hello()])
        lies = hexed([fresh.hello(role, index, 1) for role, index in IMPERSONATED]
                     + [stolen_papers.tensor_hello(self.source.randbytes(16), self.source.randbytes(16))])

        def shown(files, words=honest, **more):
            return {"way": "tls", "certificate": str(files[0]), "key": str(files[1]), "words": words, **more}

        ways = {"no_certificate": {"way": "tls", "words": honest},
                "self_signed": shown(self.own_certificate("self_signed", False)),
                "other_authority": shown(self.own_certificate("other_authority", True)),
                "wrong_role": shown(fresh.write(self.folder), lies),
                "tls_1_2": shown(fresh.write(self.folder), version="1.2"),
                "garbage": {"way": "raw", "words": self.garbage},
                "huge_length": {"way": "endless", "words": hexed(HUGE)},
                "slow_loris": {"way": "drip"},
                "held_open": {"way": "held"}}
        return {**ways, **({"expired": shown(expired.write(self.folder))} if expired else {})}

    def attack(self, ways, sessions, seconds):
        """@param sessions of each kind, spread over these seconds and over all listeners @returns the program"""
        return self.start({"what": "attack", "listeners": self.victim.look_for(doors.tcp_listeners), "seconds": seconds,
                           "ways": [{"name": name, "sessions": count, **ways[name]} for name, count in sessions.items()]})

    def disturb_the_rest(self, papers, into):
        """UDP ports, and Unix sockets as another user."""
        sent = self.ask({"what": "datagrams", "to": self.victim.look_for(doors.udp_ports), "each": DATAGRAMS, "words": self.garbage})
        add_up(into.datagrams, sent)
        for name in self.victim.names:
            there = [(kind, door.encode().hex()) for kind, door in self.victim.look_for(doors.listening, [name])]
            add_up(into.unix, self.ask({"what": "unix", "doors": there, "each": UNIX_ROUNDS, "words": hexed(
                (doors.GREETING, b"status", b"stop", bytes(32), papers.honest_hello()))}, name))

    def expect_a_door_opens(self, papers):
        """The refusals are for what was wrong: with a worker's papers, in its own name, a greeting is answered."""
        files = papers.write(self.folder)
        address, port = papers.agent_control.partition("@")[2].rsplit(":", 1)
        told = self.ask({"what": "attack", "listeners": [(address, int(port))], "seconds": 1, "ways": [
            {"name": "honest", "way": "tls", "sessions": 1, "certificate": str(files[0]), "key": str(files[1]),
             "words": hexed([papers.honest_hello()]), "enough": len(stolen_papers.WELCOME_MAGIC)}]})["kinds"]["honest"]
        expect(bytes.fromhex(told["told"]).startswith(stolen_papers.WELCOME_MAGIC), f"a worker's own greeting is refused: {told}")

    def expect_no_other_port(self):
        """Connects to every port of each host. @returns the open ones; each is one of the job, and all of those are found"""
        found = self.ask({"what": "scan", "addresses": self.victim.addresses()})
        there = sorted((address, port) for address, ports in found.items() for port in ports)
        known = self.victim.look_for(doors.tcp_listeners)
        expect(there == known, f"open are {there}, and the job listens on {known}")
        return there


def add_up(into, more):
    for name, count in more.items():
        into[name] += count


class totals:
    """What came of all sessions, by kind."""

    def __init__(self):
        self.kinds, self.most_open = {}, 0
        self.unix, self.datagrams = {"sessions": 0, "said": 0}, {"sent": 0, "answers": 0}

    def add(self, found):
        self.most_open = max(self.most_open, found["most_open"])
        for name, one in found["kinds"].items():
            known = self.kinds.setdefault(name, {"told": "", "longest_s": 0.0, "sessions": 0, "refused": 0, "unconnected": 0, "said": 0})
            add_up(known, {field: one[field] for field in ("sessions", "refused", "unconnected", "said")})
            known["longest_s"] = max(known["longest_s"], one["longest_s"])
            known["told"] = known["told"] or one["told"]

    def sessions(self):
        return sum(one["sessions"] for one in self.kinds.values())

    def lines(self):
        for name, one in sorted(self.kinds.items()):
            yield (f"{name}: {one['sessions']} sessions, {one['refused']} refused, longest {one['longest_s']:.1f} s,"
                   f" {one['said']} bytes said beyond alerts and handshakes of TLS {one['told']}"
                   + (f", {one['unconnected']} not connected" if one["unconnected"] else ""))
        yield f"another user: {self.unix['sessions']} sessions on Unix sockets, {self.unix['said']} bytes said"
        yield f"UDP: {self.datagrams['sent']} datagrams, {self.datagrams['answers']} answers"

    def are_all_refused(self, within_s):
        """And in time, without a word. Those who show nothing are hung up on after 5 seconds."""
        return (all(one["refused"] == one["sessions"] and not one["unconnected"] and one["longest_s"] <= within_s
                    for one in self.kinds.values())
                and not self.unix["said"] and not self.datagrams["answers"])
