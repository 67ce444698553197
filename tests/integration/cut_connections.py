"""Ends TCP connections of processes that go on, as a firewall that forgets them does."""

import contextlib
import ctypes
import errno
import os
import socket

PIDFD_GETFD = 438  # of all architectures; Python has no name for it


def sockets_of(pid):
    """A duplicate of each TCP socket (IPv4) of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                if not os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                    continue
                fd = libc.syscall(PIDFD_GETFD, pidfd, int(name), 0)
                if fd < 0 and ctypes.get_errno() == errno.EBADF:
                    continue  # closed since it was listed
                if fd < 0:
                    raise OSError(ctypes.get_errno(), f"cannot duplicate descriptor {name} of process {pid}")
                with socket.socket(fileno=fd) as one:
                    if one.family == socket.AF_INET and one.type == socket.SOCK_STREAM:
                        yield one
    finally:
        os.close(pidfd)


def ports_of(pid):
    """On which a process listens."""
    return {one.getsockname()[1] for one in sockets_of(pid) if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)}


def cut_connections(pid, ports):
    """Those of a process to these ports. @returns how many"""
    cut = 0
    for one in sockets_of(pid):
        with contextlib.suppress(OSError):  # it is not connected, or not any more
            if one.getpeername()[1] in ports:
                one.shutdown(socket.SHUT_RDWR)
                cut += 1
    return cut
