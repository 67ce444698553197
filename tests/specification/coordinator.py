"""The coordinator: its term, where each role runs, and who is in sync (R22, R25, R28-R31). Where training stands: `course`."""

from actor import actor
from course import course
from stores import with_entry


class coordinator(actor):
    def __init__(self, simulation, incarnation, host):
        super().__init__(simulation, "C", incarnation, host)
        self.journal, self.gave_up = simulation.journal.copy(), ()
        if simulation.bug == "stale_reader":
            simulation.after(20 * simulation.chance(), self.take_term, self)
        else:
            self.take_term()
        self.born, self.beat_number, self.identities, self.lease_number = simulation.now, 0, 0, 0
        self.role_heard = {role: simulation.now for role in simulation.roles}
        self.host_heard = {number: simulation.now for number in range(simulation.host_count)}
        self.answered = set()  # hosts that have answered a beat of this term
        self.alive_sequence, self.inventories = {}, {}  # host -> (boot, number) of its newest word, and what that said
        self.orders = {}  # role -> (incarnation, host, identity, adopt) of its newest start
        self.waiting = {}  # PS shard -> since when nobody in sync is in reach (R30)
        self.in_set_since = {}  # identity -> since when its word was missed
        self.candidates = {}  # PS shard -> (host, identity, since)
        self.gone = set()  # identities that are not there any more
        self.leases, self.crashes = {}, {}
        self.course = course(self)
        simulation.say(self, "takes the term on host", host)

    # ---- the journal

    def take_term(self):
        """R28: take the term, then read: what an older coordinator wrote before is seen, what it writes after is refused."""
        shared = self.simulation.journal
        if shared.owner >= self.incarnation:
            self.end("another one was faster")
            return
        self.gave_up = shared.gave_up[1] if shared.gave_up[0] == shared.owner else ()
        shared.owner, shared.renewed = self.incarnation, self.simulation.now
        if self.simulation.bug != "stale_reader":
            self.journal = shared.copy()

    def write(self, **entries):
        """R15: journal before send. One that is deposed, or does not know what became of its write, ends (R28).

        @returns whether it was written; if not, this coordinator has ended
        """
        simulation, shared = self.simulation, self.simulation.journal
        if not simulation.reaches(self.host, "J"):
            self.end("journal out of reach")
            return False
        if shared.owner != self.incarnation and simulation.bug != "no_term":
            self.end("journal taken by a newer coordinator")
            return False
        answered = simulation.reaches("J", self.host) and simulation.chance() >= simulation.no_answer
        if answered or simulation.chance() < .5:
            for name, value in entries.items():
                setattr(self.journal, name, value)
                setattr(shared, name, value)
            simulation.checks.journaled(entries)
        if not answered:
            self.end("no answer from the journal")
        return answered

    def has_term(self):
        return self.simulation.journal.owner == self.incarnation

    def recover(self):
        """R20: without its journal, sets of one: for each shard the best store of those that all hosts in reach tell of.

        Hosts tell of them at different moments, while the primary goes on: a store that was being filled may seem to reach
        further than the members, and lack what these committed since. So of one timeline members of the newest set count more.
        """
        simulation = self.simulation
        hosts = range(simulation.host_count)
        if any(self.is_there(host) and host not in self.inventories for host in hosts):
            return False
        if simulation.now - self.born < 2 * simulation.timeout:
            return False
        if self.journal.sets:
            return True
        sets, places = {}, {}
        for shard in range(simulation.job.shards):
            found = [host for host, inventory in self.inventories.items() if self.is_there(host) and shard in inventory]
            if not found:
                continue
            number, members = max(inventory[shard][4] for inventory in self.inventories.values() if shard in inventory)
            host = max(found, key=lambda one: (*self.quality(one, shard, members), one))
            sets[shard] = (number + 1000, ((host, self.inventories[host][shard][0]),))
            places[("P", shard)] = host
            simulation.checks.recovered(shard, host, self.inventories[host][shard][2:4], self.is_there)
        return self.write(sets=sets, places=places)

    def quality(self, host, shard, members=()):
        """R30: a store is the better the higher its timeline, then the further its end, then the later it was opened."""
        identity, opener, timeline, end, _ = self.inventories[host][shard]
        is_member = (host, identity) in members and self.simulation.bug != "any_store"
        return timeline, is_member, end, opener

    # ---- where roles run

    def is_there(self, host):
        return self.simulation.now - self.host_heard[host] < self.simulation.timeout

    def is_live(self, role):
        return self.simulation.now - self.role_heard[role] < self.simulation.timeout and role in self.journal.incarnations

    def new_identity(self):
        """R24: later ones are higher. What a store is given that may have lost something is below all of them."""
        self.identities += 1
        return (self.incarnation << 60) + (self.identities << 41) + self.simulation.random_identity()

    def restart(self, role, why):
        """A new start, on the host where the role was if that is there, else on another; a PS shard only on a member (R25)."""
        simulation, journal = self.simulation, self.journal
        live = [host for host in range(simulation.host_count) if self.is_there(host) and host in self.alive_sequence]
        if not live:
            return
        incarnation = max(journal.incarnations.get(role, 0), journal.base) + 1
        if role[0] == "P":
            placed = self.place_shard(role[1], live)
            if placed is None:
                return
        else:
            host = journal.places.get(role)
            stays = host in live and simulation.chance() < .8
            placed = (host if stays else simulation.random.choice(live), 0, False, {})
        host, identity, adopt, entries = placed
        if not self.write(incarnations=with_entry(journal.incarnations, role, incarnation),
                          places=with_entry(journal.places, role, host), **entries):
            return
        self.role_heard[role] = simulation.now + 30
        if role[0] == "P":
            self.course.forget(role[1])
        simulation.say(self, "starts", role, "incarnation", incarnation, "on host", host, why)
        simulation.count["starts " + role[0]] += 1
        if why != "first start":
            simulation.faults.lost_roles.add(role[0])
        self.orders[role] = (incarnation, host, identity, adopt)
        self.order(role)

    def place_shard(self, shard, live):
        """@returns host, identity, whether to adopt what is there, what else to journal; None: nothing is to be started"""
        simulation, journal = self.simulation, self.journal
        number, members = journal.sets.get(shard, (0, ()))
        there = [member for member in members if member[0] in live and member[1] not in self.gone]
        at_home = [member for member in there if member[0] == journal.places.get(("P", shard))]
        if not members and not journal.lost:  # the first start: nothing is there, nothing can be lost
            placed = self.set_of_one(shard, number, simulation.random.choice, live)
            simulation.checks.begun(shard)
        elif at_home and not (simulation.bug == "promote_any" and simulation.chance() < .3):
            placed = (*at_home[0], False, {})
        elif simulation.bug == "promote_any" and self.holders(shard, live):
            host = simulation.random.choice(self.holders(shard, live))
            identity = self.inventories[host][shard][0]
            sets = with_entry(journal.sets, shard, (number + 1, ((host, identity),)))
            placed = (host, identity, False, {"sets": sets})
        elif there:  # R25: promotion
            host, identity = simulation.random.choice(there)
            simulation.count["promoted"] += 1
            placed = (host, identity, False, {"sets": with_entry(journal.sets, shard, (number + 1, tuple(there)))})
        else:
            placed = self.place_without_members(shard, number, members, live)
        if placed is not None:
            self.waiting.pop(shard, None)
        return placed

    def holders(self, shard, live):
        return [host for host in live if shard in self.inventories.get(host, {})]

    def set_of_one(self, shard, number, choose, hosts):
        identity = self.new_identity()
        host = choose(hosts)
        return host, identity, True, {"sets": with_entry(self.journal.sets, shard, (number + 1, ((host, identity),)))}

    def place_without_members(self, shard, number, members, live):
        """R30: wait for the host of a member, then begin with the best store there is."""
        simulation = self.simulation
        since = self.waiting.setdefault(shard, simulation.now)
        all_gone = all(self.is_there(host) and identity in self.gone for host, identity in members)
        if simulation.now - since < 8 * simulation.timeout and not all_gone and simulation.bug != "silent_first" and members:
            self.role_heard[("P", shard)] = simulation.now - simulation.timeout
            return None
        insists = sum(host == self.host for host, _ in self.gave_up) >= 2
        few = 2 * len(live) < simulation.host_count and simulation.bug not in ("deaf_leader", "silent_first")
        if few and members and not insists:
            self.give_up(live)  # not by a minority, while others may do better
            return None
        came_back = any(self.host_heard[host] > since and identity not in self.gone for host, identity in members)
        simulation.checks.begins_with_best(shard, members, self.journal.lost, came_back)
        holders = self.holders(shard, live)
        if not holders:
            return self.set_of_one(shard, number, simulation.random.choice, live)
        best = max(holders, key=lambda host: (*self.quality(host, shard), host))
        return self.set_of_one(shard, number, lambda hosts: best, holders)

    def give_up(self, heard):
        simulation = self.simulation
        if self.write(gave_up=(self.incarnation, self.gave_up + ((self.host, len(heard)),))):
            simulation.journal.renewed = -1e9
            for agent in simulation.running.get(("A", self.host), ()):
                agent.resting_until = simulation.now + 6 * simulation.timeout
            self.end(f"hears {heard} of {simulation.host_count} hosts")

    def order(self, role):
        incarnation, host, identity, adopt = self.orders[role]
        in_sync = self.journal.sets.get(role[1]) if role[0] == "P" else None
        self.send(("A", host), "start", self.incarnation, self.alive_sequence.get(host, (0, 0))[0], role, incarnation, identity,
                  adopt, in_sync)

    def on_alive(self, sender, host, boot, sequence, echo, inventory):
        if (boot, sequence) > self.alive_sequence.get(host, (0, 0)):
            self.alive_sequence[host], self.inventories[host] = (boot, sequence), inventory
        term, number = echo
        if term == self.incarnation and number >= self.beat_number - 4 or self.simulation.bug == "one_way_beat":
            self.host_heard[host] = self.simulation.now  # R29: a round trip
        if term == self.incarnation:
            self.answered.add(host)

    def on_no_store(self, sender, shard, incarnation, identity):
        self.gone.add(identity)
        if self.journal.incarnations.get(("P", shard)) == incarnation and self.alive:
            self.restart(("P", shard), "store gone")

    def on_exit(self, sender, role, incarnation, progress):
        if self.journal.incarnations.get(role) != incarnation or not self.alive:
            return
        if progress:
            self.crashes[progress] = self.crashes.get(progress, 0) + 1
            if self.crashes[progress] >= 2:
                self.course.park(progress)
        if self.alive:
            self.restart(role, "exit seen")

    def on_role_beat(self, sender, role, incarnation):
        if self.journal.incarnations.get(role) == incarnation:
            self.role_heard[role] = max(self.role_heard[role], self.simulation.now)

    # ---- who is in sync (R22, R25)

    def on_add(self, sender, shard, incarnation, number, member):
        """Compare and set: by the newest primary, upon the newest set."""
        if self.journal.incarnations.get(("P", shard)) != incarnation or self.journal.sets[shard][0] != number:
            return
        members = self.journal.sets[shard][1]
        if member[0] not in [host for host, _ in members] and member[1] not in self.gone:
            members += (member,)
            self.simulation.say(self, "adds", member, "to the set of", shard)
            self.simulation.count["added"] += 1
        self.write(sets=with_entry(self.journal.sets, shard, (number + 1, members)))

    def keep_sets(self):
        for shard in range(self.simulation.job.shards):
            if shard not in self.journal.sets or ("P", shard) not in self.journal.incarnations:
                continue
            if not self.settle_ask(shard) or not self.take_out(shard):
                return
            candidate = self.candidate(shard)
            offered = (candidate,) if candidate else ()
            self.tell_set(shard, self.journal.sets[shard], offered)

    def tell_set(self, shard, in_sync, offered):
        start = self.journal.incarnations[("P", shard)]
        self.send(("P", shard), "set", self.incarnation, start, in_sync, offered)

    def current_status(self, shard):
        """The newest status, if it is of the set that is journaled."""
        status = self.course.statuses.get(shard)
        return status if status and status["number"] == self.journal.sets[shard][0] else None

    def settle_ask(self, shard):
        """R22: what was asked for is not there: a new number settles it. @returns false when this coordinator has ended"""
        status, (number, members) = self.current_status(shard), self.journal.sets[shard]
        known = [identity for _, identity in members]
        if not status or not any(identity in self.gone and identity not in known for identity in status["ages"]):
            return True
        return self.write(sets=with_entry(self.journal.sets, shard, (number + 1, members)))

    def leaves(self, shard, member, status):
        """Its host is silent, its identity is gone, or its word is old."""
        host, identity = member
        if host == self.journal.places[("P", shard)]:
            return False
        if not self.is_there(host) or identity in self.gone:
            return True
        old = 2 * self.simulation.timeout
        if not status or status["ages"].get(identity, 0) <= old:
            return False
        return self.simulation.now - self.in_set_since.setdefault(identity, self.simulation.now) > old

    def take_out(self, shard):
        """@returns false when this coordinator has ended"""
        number, members = self.journal.sets[shard]
        status = self.current_status(shard)
        leaving = [member for member in members if self.leaves(shard, member, status)]
        if not leaving or shard not in self.course.statuses:
            return True
        self.simulation.say(self, "takes", leaving, "out of the set of", shard)
        self.simulation.count["removed"] += 1
        smaller = (number + 1, tuple(member for member in members if member not in leaving))
        if self.simulation.bug == "cfg_unjournaled":
            self.tell_set(shard, smaller, ())
            if self.simulation.chance() < .5:
                self.simulation.faults.kill(self, "between send and journal")
                return False
        return self.write(sets=with_entry(self.journal.sets, shard, smaller))

    def candidate(self, shard):
        """(host, identity) of the store that is to be filled, or None."""
        simulation, members = self.simulation, self.journal.sets[shard][1]
        taken = [host for host, _ in members] + [self.journal.places[("P", shard)]]
        chosen = self.candidates.get(shard)
        if chosen and (chosen[1] in self.gone or not self.is_there(chosen[0]) or chosen[0] in taken
                       or simulation.now - chosen[2] > 20 * simulation.timeout):
            del self.candidates[shard]
            chosen = None
        if not chosen and len(members) < simulation.replicas:
            free = [host for host in range(simulation.host_count) if self.is_there(host) and host not in taken]
            if free:
                chosen = self.candidates[shard] = (simulation.random.choice(free), self.new_identity(), simulation.now)
        return chosen[:2] if chosen and len(members) < simulation.replicas else None

    # ---- what it does again and again

    def tick(self):
        simulation = self.simulation
        simulation.after(simulation.period, self.tick, self)
        if simulation.journal.owner < self.incarnation:
            return  # only with the planted bug stale_reader: not yet
        self.beat_number += 1
        for host in range(simulation.host_count):
            self.send(("A", host), "beat", self.incarnation, self.beat_number)
        if not self.keeps_term() or not self.answered:  # nobody has answered yet: nothing is known
            return
        if self.journal.lost and not self.recover():
            return
        self.keep_roles()
        if not self.alive:
            return
        for role in simulation.roles:
            self.send(role, "directory", self.journal.incarnations)
        self.keep_sets()
        if not self.alive:
            return
        workers = self.lease()
        self.course.look(workers)

    def keeps_term(self):
        simulation = self.simulation
        if not (simulation.reaches(self.host, "J") and simulation.reaches("J", self.host)):
            self.end("journal out of reach")
            return False
        if self.has_term():
            simulation.journal.renewed = simulation.now
        elif simulation.bug != "no_term" and simulation.chance() < .5:
            self.end("journal taken by a newer coordinator")
            return False
        heard = [host for host in range(simulation.host_count) if self.is_there(host)]
        if 2 * len(heard) < simulation.host_count and not self.insists(heard) and simulation.bug != "deaf_leader":  # R29
            self.give_up(heard)
            return False
        return True

    def insists(self, heard):
        """R29: nobody else could do better."""
        run = dict(self.gave_up)
        return run.get(self.host) and (len(heard) >= max(run.values()) and len(run) > 1
                                       or [host for host, _ in self.gave_up[-2:]] == [self.host] * 2)

    def keep_roles(self):
        simulation, journal = self.simulation, self.journal
        for shard in range(simulation.job.shards):  # R30: the wait is over when a member is in reach again
            members = journal.sets.get(shard, (0, ()))[1]
            back = any(self.is_there(host) and identity not in self.gone for host, identity in members)
            if back and simulation.bug != "old_wait":
                self.waiting.pop(shard, None)
        for role in simulation.roles:
            if role not in journal.incarnations:
                self.restart(role, "first start")
            elif not self.is_there(journal.places[role]):
                self.restart(role, "host silent")
            elif simulation.now - self.role_heard[role] > simulation.timeout:
                self.restart(role, "silent")
            elif (role in self.orders and self.orders[role][0] == journal.incarnations[role]
                    and self.role_heard[role] > simulation.now):
                self.order(role)
            if not self.alive:
                return

    def lease(self):
        """Covers all slots with the live workers, and moves them for no reason at times. @returns the live workers"""
        simulation, slots = self.simulation, self.simulation.job.slots
        workers = [role for role in simulation.roles if role[0] == "W" and self.is_live(role)]
        if workers and (set(workers) != set(self.leases) or simulation.chance() < simulation.moves):
            cuts = [0, *sorted(simulation.random.randint(0, slots) for _ in workers[1:]), slots]
            self.leases = {role: (cuts[at], cuts[at + 1]) for at, role in enumerate(workers)}
            self.lease_number += 1
        for role, (first, last) in self.leases.items():
            self.send(role, "lease", (self.incarnation, self.lease_number), self.journal.incarnations[role], first, last)
        return workers
