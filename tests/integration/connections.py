"""Who can connect to whom, where network policies are enforced: packets that are not let through are lost, so that whoever waits for an answer
waits for ever; the rules count them."""

import contextlib
import pathlib
import re
import socket
import subprocess

from network_policies import TABLE
from waiting import PATIENCE_S, wait_until

LISTENS = "0A"  # in /proc/net/tcp
LOOPBACK = "0100007F"


def listened_ports(hosts, host):
    """TCP ports of that host at which others than its own could come."""
    def read():
        lines = pathlib.Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]
        local = [fields[1].split(":") for line in lines if (fields := line.split())[3] == LISTENS]
        return sorted({int(port, 16) for address, port in local if address != LOOPBACK})

    return hosts.call_within(host, read)


def can_connect(hosts, host, address, port):
    """For who is let through; else it raises TimeoutError after a long time."""
    hosts.call_within(host, lambda: socket.create_connection((address, port), timeout=PATIENCE_S).close())
    return True


def lost_packets(hosts, host, chain):
    """How many packets the policies of that pod have not let through. @param chain "ingress" or "egress\""""
    told = subprocess.run(["nsenter", f"--net=/run/netns/{hosts.namespace(host)}", "nft", "list", "chain", "inet", TABLE, chain],
                          capture_output=True, text=True, check=True).stdout
    return int(re.search(r"counter packets (\d+) bytes \d+ drop", told)[1])


def is_connected(one):
    with contextlib.suppress(OSError):
        return bool(one.getpeername())
    return False


def lost_connections(hosts, host, targets, counted):
    """Connects from that host to all targets, (address, port), which are to be lost. Blocks until what counts them has seen as many.
    @param counted tells how many packets were lost  @returns those that were let through or refused"""
    before = counted()
    with contextlib.ExitStack() as held:
        made = {target: held.enter_context(hosts.call_within(host, socket.socket)) for target in targets}
        for target, one in made.items():
            one.setblocking(False)
            one.connect_ex(target)
        wait_until(lambda: counted() >= before + len(made) or any(map(has_answer, made.values())), "packets are lost")
        return [target for target, one in made.items() if has_answer(one)]


def has_answer(one):
    return is_connected(one) or one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
