"""One seed of the executable specification: a job, hosts, a network and faults, in virtual time.

The same seed runs the same way, event by event. Messages may be lost, doubled, late and reordered, over links that may work in
one direction only. Hosts reboot, are lost with their disks and are cut off, some for ever; the journal may be out of a host's
reach, and a write to it may get no answer, done or not.
"""

import collections
import heapq
import random

from actor import deposed, violation
from arithmetic import arithmetic, revision
from checks import checks
from coordinator import coordinator
from faults import faults
from host_agent import host_agent
from keeper import keeper
from stores import host, journal

MODES = {
    "default": "everything, each kind of fault on or off in each seed",
    "undo": "an operator goes back in most seeds",
    "churn": "copies come and go, messages are late, hosts come back with old disks",
    "stress": "slow log, shards and workers die together: shards up to B + 1 versions apart",
}
FAULTS_OF_HOSTS = (("die", .4, 2), ("cut_host", .4, 2), ("cut_link", .4, 3), ("boot", .3, 2), ("cut_journal", .3, 1.5),
                   ("kill_K", .3, 2), ("die_working", .2, 1))


class simulation:
    """`bug` is a planted bug (planted_bugs.py); `changes` and `more_faults` direct a seed to where a rare one shows."""

    def __init__(self, seed, bug=None, mode="default", hosts=None, trace=False, changes=None, more_faults=()):
        self.random = random.Random(seed)
        self.chance = self.random.random
        self.bug, self.tracing = bug, trace
        self.now, self.events, self.event_number, self.running, self.done = 0.0, [], 0, {}, False
        self.count = collections.Counter()
        rates = self.draw_job(mode, hosts)
        self.checks, self.faults = checks(self), faults(self)
        self.hosts = [host(number) for number in range(self.host_count)]
        self.cut_links, self.lost_hosts = set(), set()  # what does not arrive; hosts that never come back
        self.revisions = {0: self.first_revision}  # timeline -> what it trains
        self.journal = journal(self)
        self.roles = [("P", shard) for shard in range(self.job.shards)] + [("W", worker) for worker in range(self.workers)]
        for kind, rate in rates.items():
            for _ in range(int(rate + self.chance())):
                self.strike(kind)
        self.after(self.calm, self.faults.stop, None)
        for number in range(self.host_count):
            self.boot(number, 0)
        coordinator(self, self.journal.owner + 1, self.random.randrange(self.host_count))
        if mode == "undo":
            self.undo = .03 + .05 * (seed % 5)
        for kind in more_faults:
            self.strike(kind)
        for name, value in (changes or {}).items():
            setattr(self, name, value)

    # ---- what the seed decides

    def draw_job(self, mode, hosts):
        """@returns how often each kind of fault strikes"""
        pick, chance = self.random.choice, self.chance
        stress, churn = mode == "stress", mode == "churn"
        shards, self.workers = pick((2, 3) if stress else (1, 2, 2, 3)), pick((1, 2, 2, 3, 4))
        slots, steps = pick((1, 2, 3, 4, 4, 8)), pick((6, 8) if stress else (2, 3, 4, 5, 6))
        coupled = shards > 1 and chance() < .35
        self.bound = pick((1, 1, 2, 3))
        self.snapshots_only, self.power = chance() < .25, chance() < .4
        self.poison, self.to_evaluate = self.draw_poison(steps, slots), self.draw_evaluation(steps)
        self.host_count = pick((3, 4, 5)) if churn else pick((1, 2, 3, 3, 4, 5)) if hosts is None else hosts
        self.replicas = min(self.host_count, pick((1, 2, 2, 2, 3)))
        if self.host_count > 1:
            steps = pick((4, 6, 8, 10, 12))
            self.to_evaluate, self.poison = self.draw_evaluation(steps), self.draw_poison(steps, slots)
        self.job = arithmetic(shards, slots, steps, coupled)
        self.first_revision = revision((0,) * steps, frozenset())
        self.no_answer = .01 if chance() < .3 else 0
        self.churn = churn
        self.draw_network()
        rates = self.draw_rates()
        if stress:
            rates = self.draw_stress()
        if churn:
            rates = self.draw_churn()
        return rates

    def draw_poison(self, steps, slots):
        return {(int(self.chance() * steps), int(self.chance() * slots))} if self.chance() < .08 else set()

    def draw_evaluation(self, steps):
        return {1 + int(self.chance() * steps)} if self.chance() < .4 else set()

    def sometimes(self, probability, low, high):
        return low + (high - low) * self.chance() if self.chance() < probability else 0

    def draw_network(self):
        pick, chance, alone = self.random.choice, self.chance, self.host_count == 1
        self.loss, self.doubling = self.sometimes(.5, .01, .2), self.sometimes(.4, .01, .2)
        self.late = self.sometimes(.5, .01, .15)
        self.moves, self.idle = self.sometimes(.5, .02, .3), self.sometimes(.4, .1, .6)
        self.damage, self.undo = self.sometimes(.2, .1, .5), self.sometimes(.12, .01, .05)
        self.period = pick((8, 12, 20))
        self.timeout, self.snapshot_every = self.period * 5, pick((10, 30, 80))
        self.log_time, self.snapshot_time = pick((1, 5, 20, 60)), pick((2, 10, 50))
        self.noticed = pick((1, .8, .3))  # how often the end of a process is seen at once
        self.calm = 40 + 200 * chance() if alone else 150 + 400 * chance()  # when faults stop
        self.limit = self.calm + 8000  # when the job must be over
        self.first_fault = 0 if alone or chance() < .2 else 70

    def draw_rates(self):
        rates = {kind: self.sometimes(.45, .5, 3) for kind in
                 ("kill_P", "kill_W", "kill_C", "kill_pair", "partition", "power", "second_coordinator", "burst")}
        if self.chance() < .04 and self.host_count == 1:
            rates["disk"] = .7
        if self.chance() < .05:
            rates["journal"] = .8
        if self.host_count > 1:
            for kind, low, high in FAULTS_OF_HOSTS:
                rates[kind] = self.sometimes(.5, low, high)
            if self.chance() < .7:
                rates["power"] = 0
        return rates

    def draw_stress(self):
        pick, chance = self.random.choice, self.chance
        self.log_time, self.snapshots_only, self.bound, self.noticed = pick((60, 150, 300)), False, pick((2, 3, 4)), 1
        rates = dict(kill_P=3 * chance(), kill_W=3 * chance(), kill_pair=1 + 2 * chance(), burst=chance(), kill_C=chance(), power=.3,
                     partition=.5)
        if self.host_count > 1:
            rates.update(die=1 + chance(), cut_host=chance(), cut_link=2 * chance(), boot=chance(), kill_K=chance(),
                         cut_journal=.5 * chance())
        self.calm = 150 + 250 * chance()
        self.limit = self.calm + 20000
        return rates

    def draw_churn(self):
        pick, chance = self.random.choice, self.chance
        self.late, self.snapshot_every, self.first_fault = .12 + .1 * chance(), 10, 60
        self.snapshots_only, self.replicas = chance() < .15, min(self.host_count, pick((2, 3, 3)))
        rates = dict(die=1 + 2 * chance(), boot=3 * chance(), kill_K=2 * chance(), kill_P=4 * chance(), cut_link=2 * chance(),
                     kill_C=chance(), kill_W=2 * chance())
        self.calm = 250 + 350 * chance()
        self.limit, self.log_time = self.calm + 10000, min(self.log_time, 20)
        return rates

    def strike(self, kind):
        self.after(self.first_fault + self.chance() * (self.calm - self.first_fault), self.faults.strike, None, kind)

    # ---- time and network

    def say(self, who, *words):
        if self.tracing:
            name = "".join(map(str, who.role)) + f"/{who.incarnation}" if who is not None else "world"
            print(f"{self.now:8.1f} {name:7} " + " ".join(map(str, words)))

    def after(self, delay, call, who, *arguments):
        """Calls after a while, unless `who` has ended by then."""
        self.event_number += 1
        heapq.heappush(self.events, (self.now + delay, self.event_number, call, who, arguments))

    def log_delay(self):
        return self.log_time * self.chance()

    def snapshot_delay(self):
        return self.snapshot_time * self.chance()

    def send(self, sender, receiver, message):
        chance = self.chance
        if chance() < self.loss:
            return
        for _ in range(2 if chance() < self.doubling else 1):
            delay = .5 + 2 * chance()
            if chance() < self.late:
                delay *= 20
            self.event_number += 1
            heapq.heappush(self.events, (self.now + delay, self.event_number, self.deliver, None, (sender, receiver, message)))

    def deliver(self, sender, receiver, message):
        """To an actor, or to whoever runs as a role: also those that were replaced and do not know it."""
        named = isinstance(receiver, (str, tuple))
        for one in list(self.running.get(receiver, ())) if named else (receiver,):
            if one.alive and one.group == sender.group and self.reaches(sender.host, one.host):
                try:
                    one.on(message, sender)
                except deposed:
                    one.end("told of a timeline that its journal does not have: there is a newer coordinator")

    def reaches(self, begin, end):
        """From host to host; "J" is the journal."""
        return begin == end or (begin, end) not in self.cut_links

    # ---- hosts

    def random_identity(self):
        return self.random.getrandbits(40)

    def boot(self, number, delay):
        self.after(delay, self.booted, None, number, self.hosts[number].boot)

    def booted(self, number, boot):
        one = self.hosts[number]
        if boot != one.boot or (one.up and self.running.get(("A", number))):
            return
        one.up = True
        host_agent(self, number)
        keeper(self, number, 1000 * one.boot)

    def start_coordinator(self):
        up = [one.number for one in self.hosts if one.up]
        if not self.done and up:
            coordinator(self, self.journal.owner + 1, self.random.choice(up))

    def expected(self, timeline):
        return self.job.expected(self.revisions[timeline])

    # ---- the run

    def run(self):
        """Until the job is over; raises `violation` where a promise is broken."""
        while self.events and not self.done:
            self.handle_next()
        if not self.done:
            raise violation("liveness: nothing left to do")

    def handle_next(self):
        time, _, call, who, arguments = heapq.heappop(self.events)
        if who is not None and not who.alive:
            return
        self.now = time
        call(*arguments)
        if time > self.limit:
            held = [(kept.shard, kept.timeline, sorted(kept.durable())) for kept in self.checks.members()]
            raise violation(f"liveness: not over {time - self.calm:.0f} after the last fault; members hold {held}")
