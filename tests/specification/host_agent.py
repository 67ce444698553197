"""The agent of a host: starts what the coordinator orders, says what is there, starts a coordinator when there is none (R28)."""

from actor import actor
from coordinator import coordinator
from ps_shard import ps_shard
from stores import store
from worker import worker


class host_agent(actor):
    def __init__(self, simulation, host):
        super().__init__(simulation, ("A", host), simulation.hosts[host].boot, host)
        self.term, self.heard, self.started, self.resting_until, self.echo = 0, simulation.now, {}, 0, (0, 0)

    def stores(self):
        return self.simulation.hosts[self.host].stores

    def on_beat(self, sender, term, number):
        if term < self.term:
            return
        self.term = term
        self.heard, self.echo = self.simulation.now, (term, number)
        self.say_alive()

    def say_alive(self):
        inventory = {shard: (kept.identity, kept.opener, kept.timeline, max(kept.durable()), kept.in_sync)
                     for shard, kept in self.stores().items()}
        self.sequence += 1
        self.send("C", "alive", self.host, self.incarnation, self.sequence, self.echo, inventory)

    def on_start(self, sender, term, boot, role, incarnation, identity, adopt, in_sync):
        """R25: `adopt`: open what is there under this identity, or make a store; else it must be the store `identity`."""
        if term < self.term or incarnation <= self.started.get(role, 0):
            return
        if boot != self.incarnation and self.simulation.bug != "forged_id":
            return
        for other in list(self.simulation.running.get(role, ())):
            if other.host == self.host:
                other.end("replaced by its agent")
        if role[0] == "P":
            kept = self.stores().get(role[1])
            if (kept is None or kept.identity != identity) and not adopt:
                self.send("C", "no_store", role[1], incarnation, identity)
                return
        self.started[role] = incarnation
        self.simulation.after(2 + 6 * self.simulation.chance(), self.start, self, role, incarnation, identity, in_sync)

    def start(self, role, incarnation, identity, in_sync):
        if self.started.get(role) != incarnation:
            return
        if role[0] == "W":
            worker(self.simulation, role[1], incarnation, self.host)
            return
        kept = self.stores().get(role[1])
        if kept is None:
            kept = self.stores()[role[1]] = store(self.simulation, role[1], identity)
        if kept.opener < incarnation:
            kept.identity = identity
            ps_shard(self.simulation, role[1], incarnation, self.host, in_sync)

    def tick(self):
        simulation, journal = self.simulation, self.simulation.journal
        self.say_alive()
        if (simulation.now - self.heard > simulation.timeout * (1 + simulation.chance()) and simulation.now > self.resting_until
                and simulation.reaches(self.host, "J") and simulation.reaches("J", self.host)
                and simulation.now - journal.renewed > simulation.timeout and not simulation.done):
            self.heard = simulation.now  # R28: nobody is heard, and the journal says that nobody is there
            coordinator(simulation, journal.owner + 1, self.host)
        simulation.after(simulation.period, self.tick, self)
