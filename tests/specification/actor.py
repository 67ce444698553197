"""What all roles of the executable specification are."""


class violation(Exception):
    """A promise was broken: what, and how."""


class deposed(Exception):
    """A coordinator was told of a timeline that its journal does not have: there is a newer one."""


class actor:
    """One start of a role on a host. A message ("name", ...) is handled by `on_name(sender, ...)`; `tick` is called at first."""

    def __init__(self, simulation, role, incarnation, host):
        self.simulation, self.role, self.incarnation, self.host = simulation, role, incarnation, host
        self.alive, self.group, self.sequence = True, 0, 0
        simulation.running.setdefault(role, []).append(self)
        simulation.after(simulation.chance() * 5, self.tick, self)

    def send(self, receiver, *message):
        self.simulation.send(self, receiver, message)

    def end(self, why):
        if self.alive:
            self.alive = False
            self.simulation.running[self.role].remove(self)
            self.simulation.say(self, "ends:", why)

    def on(self, message, sender):
        getattr(self, "on_" + message[0])(sender, *message[1:])

    def tick(self):
        """Roles that repeat nothing of their own accord have none."""
