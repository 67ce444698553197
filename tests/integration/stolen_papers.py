"""What a role is started with: its name, the secret of the run, its certificate and key; taken, as root, from the sealed memory
in which they lie until its process has read them."""

import os
import pathlib
import ssl
import struct
import subprocess
import threading
import time

from protobuf_wire import fields

BOOTSTRAP_OPTION = b"--bootstrap-fd"  # actors/agent/process/bootstrap.hpp
LOOK_S = 0.0005
ROLES = {"coordinator": 0, "data_dispatcher": 1, "ps_shard": 2, "worker": 3, "agent": 4, "host_agent": 5}  # on the wire
HELLO = struct.Struct("<II16sIIQIIQ")  # actors/link/greeting.hpp
HELLO_MAGIC, WELCOME_MAGIC = b"dlch", b"dlcw"
TENSOR_HELLO = struct.Struct("<4sI16s16s")  # transport/tcp_wire.hpp
THE_AGENT = ("agent", 0, 1)


def tensor_hello(server, client):
    """The first words to a server of tensors. @param server its identity, client: a nonce"""
    return TENSOR_HELLO.pack(b"dlth", 1, server, client)


class papers:
    """Of one start of a role: proto/bootstrap.proto."""

    def __init__(self, content):
        told = {number: values[-1] for number, values in fields(content).items()}
        self.role, self.index = told[2].decode(), told.get(3, 0)
        self.incarnation = int.from_bytes(told[4], "little")
        self.token = told[6]
        self.agent_control = told[8].decode()
        shown = fields(told[22]) if 22 in told else {}
        self.certificate, self.key = (shown.get(number, [b""])[-1] for number in (1, 2))
        self.ends_at, self.files = None, None

    def write(self, folder):
        """@returns files of the certificate and of the key, for nobody else"""
        if self.files is None:
            self.files = tuple(folder / f"{self.role}-{self.index}-{self.incarnation}.{kind}" for kind in ("pem", "key"))
            for file, content in zip(self.files, (self.certificate, self.key)):
                with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                    out.write(content)
            told = subprocess.run(["openssl", "x509", "-in", str(self.files[0]), "-noout", "-enddate"], check=True, capture_output=True, text=True)
            self.ends_at = ssl.cert_time_to_seconds(told.stdout.strip().removeprefix("notAfter="))
        return self.files

    def hello(self, role, index, incarnation, to=THE_AGENT):
        """The first words of a control connection, of who says that he is that role."""
        kind, of, start = to
        return HELLO.pack(int.from_bytes(HELLO_MAGIC, "little"), 1, self.token, ROLES[role], index, incarnation, ROLES[kind], of, start)

    def honest_hello(self):
        return self.hello(self.role, self.index, self.incarnation)


class thief:
    """Takes what the roles that start meanwhile of a program are started with; not of each: some are faster."""

    def __init__(self, program):
        self.program, self.taken, self.over = program, [], threading.Event()
        self.thread = threading.Thread(target=self.follow)

    def __enter__(self):
        self.known = self.pids()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    @staticmethod
    def pids():
        return {name for name in os.listdir("/proc") if name.isdigit()}

    def follow(self):
        while not self.over.is_set():
            for pid in self.pids() - self.known:
                if self.has_read(pid):
                    self.known.add(pid)
            time.sleep(LOOK_S)

    def has_read(self, pid):
        """@returns whether there is nothing more to be taken of this process"""
        try:
            if os.readlink(f"/proc/{pid}/exe") != self.program:
                return False  # not yet, maybe
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if BOOTSTRAP_OPTION not in words:
                return False
            number = words[words.index(BOOTSTRAP_OPTION) + 1].decode()
            self.taken.append(papers(pathlib.Path(f"/proc/{pid}/fd/{number}").read_bytes()))
        except (OSError, KeyError, IndexError):
            pass  # gone, read already, or another file by now
        return True
