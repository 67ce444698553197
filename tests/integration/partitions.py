"""Networks of hosts that part and heal: who hears nothing of whom, in which turns and for how long, by a seed.

Afterwards steps are taken again, every host is in the job and every copy whole. In the end the bits and the samples are those of an
undisturbed run on one host: so nothing was taken of what a role said that was given up meanwhile.
"""

import time
import typing

import phase_kills

KINDS = ("cut", "deaf", "mute", "parted", "half_parted", "split", "flapping")
OF_TWO = ("parted", "half_parted", "split")
LASTS_S = (0.1, 4)  # a host is given up after 0.7 to 0.9 s, and its agent ends 10 s after it was cut off
FLAPS, FLAP_S = (3, 8), (0.05, 1.2)
LOOK_S = 0.01
PATIENCE_S = 120  # on however busy a machine


class partition(typing.NamedTuple):
    kind: str
    hosts: tuple  # that are struck
    turns: list   # [(seconds, {host: those of which it hears nothing})], healed afterwards

    def describe(self):
        return f"{self.kind}, {' and '.join(self.hosts)}, {sum(lasts for lasts, _ in self.turns):.1f} s"


class outcome(typing.NamedTuple):
    """Times from the healing."""

    drawn: partition
    resumed_ms: float  # until a step is taken
    settled_s: float   # until all hosts are in the job and all copies whole


def both_ways(some, others):
    return {**dict.fromkeys(some, others), **dict.fromkeys(others, some)}


def draw(kind, source, names):
    """@param names of hosts, the root's first"""
    one, two = source.sample(names[1:], 2)
    rest = [name for name in names if name != one]
    unheard = {"cut": both_ways([one], rest), "deaf": {one: rest}, "mute": dict.fromkeys(rest, [one]),
               "parted": both_ways([one], [two]), "half_parted": {one: [two]},
               "split": both_ways([name for name in rest if name != two], [one, two])}
    if kind != "flapping":
        struck = (one, two) if kind in OF_TWO else (one,)
        return partition(kind, struck, [(source.uniform(*LASTS_S), unheard[kind])])
    turns, what = [], source.choice(["cut", "deaf", "mute"])
    for _ in range(source.randint(*FLAPS)):
        turns += [(source.uniform(*FLAP_S), unheard[what]), (source.uniform(*FLAP_S), {})]
    return partition(kind, (one,), turns[:-1])


class network:
    """Of hosts, healed at the end."""

    def __init__(self, hosts):
        self.hosts, self.filtered = hosts, set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.part({})

    def part(self, unheard):
        """From now on so, and no other way."""
        for host, others in unheard.items():
            self.hosts.drop_from(host, *others)
        for host in self.filtered - set(unheard):
            self.hosts.heal(host)
        self.filtered = set(unheard)


def is_settled(status):
    return phase_kills.is_settled(status) and all(one["state"] == "there" for one in status["hosts"])


def pass_through(job, net, drawn):
    """The job trains, and is settled. @returns the outcome"""
    for lasts, unheard in drawn.turns:
        net.part(unheard)
        time.sleep(lasts)  # what is tested, not a wait for anything
    before = job.status()["step"]
    net.part({})
    healed = time.monotonic()
    job.wait_for(lambda status: status["step"] > before, f"a step is taken after {drawn.describe()}", PATIENCE_S, LOOK_S)
    resumed = time.monotonic()
    job.wait_for(is_settled, f"all hosts and copies are there again after {drawn.describe()}", PATIENCE_S)
    return outcome(drawn, (resumed - healed) * 1000, time.monotonic() - healed)
