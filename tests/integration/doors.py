"""Where the processes of a job can be reached: their sockets, and what these say to somebody else."""

import contextlib
import os
import pathlib
import socket

NOBODY = 65534
UNIX_LISTENS = 0x10000  # a flag in /proc/net/unix
TCP_LISTENS = "0A"  # a state in /proc/net/tcp
GREETING = b"dlch" + (1).to_bytes(4, "little") + bytes(48)


def sockets_of(pid):
    """Inodes of the process's sockets."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    return found


def table(pid, name):
    """Fields of each line of a table in the network namespace of the process."""
    file = pathlib.Path(f"/proc/{pid}/net", name)
    return [line.split() for line in file.read_text().splitlines()[1:]] if file.exists() else []


def network_sockets(pid="self"):
    """Inodes of all sockets of its network namespace that are not Unix sockets."""
    return {int(fields[9]) for name in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6") for fields in table(pid, name)}


def listening(inodes, pid="self"):
    """(type, abstract name) of the Unix sockets among these that listen."""
    return [(int(fields[4], 16), "\0" + fields[7][1:]) for fields in table(pid, "unix")
            if len(fields) == 8 and int(fields[3], 16) & UNIX_LISTENS and int(fields[6]) in inodes and fields[7].startswith("@")]


def address_of(text):
    """(IPv4 address, port) as in /proc/net/tcp."""
    number, port = text.split(":")
    return socket.inet_ntoa(bytes.fromhex(number)[::-1]), int(port, 16)


def tcp_listeners(inodes, pid):
    """(address, port) of those that listen for TCP."""
    return [address_of(fields[1]) for fields in table(pid, "tcp") if fields[3] == TCP_LISTENS and int(fields[9]) in inodes]


def udp_ports(inodes, pid):
    return [address_of(fields[1]) for fields in table(pid, "udp") if int(fields[9]) in inodes]


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


def become(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def said_as(user, run, folder="/"):
    """What `run()`, a text, is for another user, in that folder; in a process of its own. "" where it cannot."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with contextlib.suppress(OSError), os.fdopen(write, "w") as answer:
                os.chdir(folder)
                become(user)
                answer.write(run())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said
