"""What happens to a job, and what of it may be held against the rules."""

from keeper import keeper


class faults:
    def __init__(self, simulation):
        self.simulation = simulation
        self.lost_roles = set()  # "P", "W": of which a process was lost
        self.operator = False  # went back on purpose
        self.power_lost_tail = False  # the power was cut although `process` protects from no power cut
        self.disk_lost = False
        self.journal_lost = False
        self.cut_for_ever = set()
        self.before_loss = {}  # PS shard -> identities of its set when the journal was lost

    def strike(self, kind):
        if self.simulation.done:
            return
        self.simulation.count[kind] += 1
        self.simulation.say(None, "FAULT", kind)
        if kind.startswith("kill_") and kind != "kill_pair":
            self.kill_some(kind[5], "SIGKILL")
        else:
            getattr(self, kind)()

    # ---- processes

    def some(self, kind):
        found = [one for role, starts in self.simulation.running.items() for one in starts if role[0] == kind]
        return self.simulation.random.choice(found) if found else None

    def kill_some(self, kind, why):
        found = self.some(kind)
        if found:
            self.kill(found, why)

    def kill(self, victim, why):
        simulation = self.simulation
        if not victim.alive:
            return
        victim.end(why)
        if victim.role == "C":
            if simulation.host_count == 1:
                simulation.after(3 + 40 * simulation.chance(), simulation.start_coordinator, None)
        elif victim.role[0] == "K":
            simulation.after(2 + 10 * simulation.chance(), self.restart_keeper, None, victim.host, victim.incarnation + 1,
                             simulation.hosts[victim.host].boot)
        else:
            self.lost_roles.add(victim.role[0])
            if simulation.chance() < simulation.noticed or why == "poison":
                progress = victim.progress if why == "poison" else None
                simulation.after(1 + 5 * simulation.chance(), self.notice, None, victim, progress)

    def restart_keeper(self, number, incarnation, boot):
        one = self.simulation.hosts[number]
        if one.up and one.boot == boot and not self.simulation.running.get(("K", number)):
            keeper(self.simulation, number, incarnation)

    def notice(self, victim, progress):
        """The agent tells the coordinator of an end that it has seen."""
        for one in list(self.simulation.running.get("C", ())):
            if self.simulation.hosts[victim.host].up and self.simulation.reaches(victim.host, one.host):
                one.on(("exit", victim.role, victim.incarnation, progress), victim)

    def kill_pair(self):
        for kind in "PW":
            self.kill_some(kind, "killed in a pair")

    def burst(self):
        simulation = self.simulation
        for number in range(3):
            delay = number * 6 * simulation.chance()
            simulation.after(delay, self.strike, None, simulation.random.choice(("kill_P", "kill_W", "kill_C", "kill_P")))

    def second_coordinator(self):
        self.simulation.start_coordinator()

    # ---- hosts

    def down(self, number, why, lose_disk, lose_tail):
        """All that runs on a host ends; its disk is lost, or what was not synced is."""
        simulation, one = self.simulation, self.simulation.hosts[number]
        one.up = False
        one.boot += 1
        simulation.say(None, "host", number, why, "disk lost" if lose_disk else "tail lost" if lose_tail else "")
        for role in list(simulation.running):
            for victim in list(simulation.running[role]):
                if victim.host == number:
                    if role[0] in "PW":
                        self.lost_roles.add(role[0])
                    victim.end(why)
        if lose_disk:
            one.stores = {}
        elif lose_tail:
            for kept in one.stores.values():
                kept.power_cut()
                if not simulation.power and not simulation.snapshots_only and simulation.bug != "same_id_on_boot":
                    kept.identity = simulation.random_identity()  # R24: it may lack what it acknowledged
                simulation.checks.faithful(kept, "after a boot")

    def die(self, working=False):
        """A host is lost: with its disk, mostly; it comes back, or another does in its place, or none."""
        simulation = self.simulation
        up = [one.number for one in simulation.hosts if one.up]
        good = [number for number in up if number not in simulation.lost_hosts]
        if working:
            places = {simulation.running[("P", shard)][0].host for shard in range(simulation.job.shards)
                      if simulation.running.get(("P", shard))}
            up = [number for number in up if number in places] or up
        if up and (len(good) > 1 or simulation.chance() < .1):
            number = simulation.random.choice(up)
            lose_disk = simulation.chance() < (.3 if simulation.churn else .7)
            self.down(number, "is lost", lose_disk, simulation.chance() < .5)
            if len(good) > 2 and simulation.chance() < .5:
                simulation.lost_hosts.add(number)
            else:
                simulation.boot(number, 20 + 200 * simulation.chance())

    def die_working(self):
        self.die(working=True)

    def boot(self):
        simulation = self.simulation
        number = simulation.random.randrange(simulation.host_count)
        if simulation.hosts[number].up:
            self.down(number, "reboots", False, True)
            simulation.boot(number, 5 + 60 * simulation.chance())

    def power(self):
        simulation = self.simulation
        if not simulation.power and not simulation.snapshots_only:
            self.power_lost_tail = True
        for one in simulation.hosts:
            if one.up:
                self.down(one.number, "power", False, True)
                simulation.boot(one.number, 5 + 10 * simulation.chance())
        if simulation.host_count == 1:
            simulation.after(20, simulation.start_coordinator, None)

    def disk(self):
        victim = self.some("P")
        self.disk_lost = True
        if victim:
            self.kill(victim, "disk lost")
            self.simulation.hosts[victim.host].stores.pop(victim.number, 0)
            for other in list(self.simulation.running.get(victim.role, ())):
                self.kill(other, "disk lost")

    def journal(self):
        """It is gone, the run folders are not. Results of evaluations are in a file of their own."""
        simulation, old = self.simulation, self.simulation.journal
        self.before_loss = {shard: [identity for _, identity in members] for shard, (_, members) in old.sets.items()}
        simulation.journal = new = type(old)(simulation)
        new.owner, new.base, new.lost, new.evaluations = old.owner + 1000, old.base + 1000, True, old.evaluations
        self.journal_lost = True
        for one in list(simulation.running.get("C", ())):
            self.kill(one, "journal lost")
        if not simulation.running.get("C") and simulation.host_count == 1:
            simulation.after(20, simulation.start_coordinator, None)

    # ---- the network

    def partition(self):
        simulation = self.simulation
        group = 1 + int(simulation.chance() * 3)
        for starts in simulation.running.values():
            for one in starts:
                if simulation.chance() < .3:
                    one.group = group
        simulation.after(10 + 150 * simulation.chance(), self.heal, None)

    def heal(self):
        for starts in self.simulation.running.values():
            for one in starts:
                one.group = 0

    def cut_host(self):
        """Cut off both ways, or deaf, or mute; with or without the journal; some for ever."""
        simulation = self.simulation
        number = simulation.random.randrange(simulation.host_count)
        way = simulation.random.choice(("both", "deaf", "mute"))
        others = [other for other in range(simulation.host_count) if other != number]
        others += ["J"] if simulation.chance() < .5 else []
        cut = set()
        for other in others:
            if way != "deaf":
                cut.add((number, other))
            if way != "mute":
                cut.add((other, number))
        simulation.cut_links |= cut
        simulation.say(None, "host", number, "is cut off", way, others)
        good = [one.number for one in simulation.hosts if one.number not in simulation.lost_hosts and one.up]
        if len(good) > 2 and simulation.chance() < .3 and number not in simulation.lost_hosts:
            simulation.lost_hosts.add(number)
            self.cut_for_ever |= cut
        else:
            simulation.after(10 + 200 * simulation.chance(), self.mend, None, cut)

    def cut_link(self):
        simulation = self.simulation
        if simulation.host_count > 1:
            begin, end = simulation.random.sample(range(simulation.host_count), 2)
            cut = {(begin, end)} | ({(end, begin)} if simulation.chance() < .4 else set())
            simulation.cut_links |= cut
            simulation.after(10 + 250 * simulation.chance(), self.mend, None, cut)

    def cut_journal(self):
        simulation = self.simulation
        number = simulation.random.randrange(simulation.host_count)
        cut = set(simulation.random.sample([(number, "J"), ("J", number)], simulation.random.choice((1, 2))))
        simulation.cut_links |= cut
        simulation.after(10 + 150 * simulation.chance(), self.mend, None, cut)

    def mend(self, cut):
        self.simulation.cut_links -= cut - self.cut_for_ever

    def stop(self):
        """From now on nothing happens any more; what is lost for ever stays lost."""
        simulation = self.simulation
        simulation.loss = simulation.doubling = simulation.late = simulation.no_answer = 0
        self.heal()
        simulation.cut_links &= self.cut_for_ever
        simulation.say(None, "faults stop")
        if not simulation.running.get("C") and simulation.host_count == 1:
            simulation.after(20, simulation.start_coordinator, None)
