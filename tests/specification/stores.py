"""What is durable: the stores of PS shards on their hosts, and the coordinator's journal."""

import collections

record = collections.namedtuple("record", "root coupled norm salt")  # of one step; `salt` stands for "revision of its timeline"


def with_entry(entries, key, value):
    return {**entries, key: value}


def lowest_branch(history, after, until):
    """The lowest version at which a timeline in (after, until] began, or None."""
    return min((branch for timeline, (branch, _) in history.items() if after < timeline <= until), default=None)


def cut(versions, timeline, until, history):
    """R26: of what a store on `timeline` holds, what belongs to the timeline `until`."""
    if timeline > until:
        return {0}
    branch = lowest_branch(history, timeline, until)
    return set(versions) if branch is None else {version for version in versions if version <= branch}


class with_history:
    """What has `history`, timeline -> (version at which it began, revision), stands on the newest of them."""

    @property
    def timeline(self):
        return max(self.history)

    @property
    def revision(self):
        return self.history[max(self.history)][1]


class store(with_history):
    """One copy of a PS shard's log, snapshots and history, on one host, under an identity (R24).

    The log holds the steps below `appended` of which those below `synced` survive a power cut. Snapshots and the markers of
    rewinds are synced before they count (R11, R16). `change` counts what happened to it (R23). Below `floor` it may lack
    versions: it was told to drop them, or was begun there.
    """

    def __init__(self, simulation, shard, identity):
        self.simulation, self.shard, self.identity = simulation, shard, identity
        self.opener, self.floor, self.in_sync, self.change = 0, 0, (0, ()), 0
        self.history = {0: (0, simulation.first_revision)}  # timeline -> (version at which it began, revision)
        self.log, self.appended, self.synced = {}, 0, 0
        self.snapshots = {0: simulation.job.initial(shard)}

    def reachable(self, end):
        """The versions that snapshots, and the log below `end`, lead to; 0 always, it is a function of the job (R11)."""
        found, log = {0, *self.snapshots}, self.log
        for version in list(found):
            while version < end and version in log:
                version += 1
                if version in found:
                    break  # what it leads to is found from there
                found.add(version)
        return found

    def restorable(self):
        return self.reachable(self.appended)

    def durable(self):
        """What it can be asked for after whatever the job's durability protects against."""
        if self.simulation.snapshots_only:
            return set(self.snapshots) | {0}
        return self.reachable(self.synced if self.simulation.power else self.appended)

    def of_timeline(self, timeline, history):
        return cut(self.durable(), self.timeline, timeline, history)

    def restore(self, version):
        begin = max([snapshot for snapshot in self.snapshots if snapshot <= version] or [0])
        parameters = self.snapshots.get(begin, self.simulation.job.initial(self.shard))
        for step in range(begin, version):
            found = self.log.get(step)
            if found is None:
                return None
            parameters = self.simulation.job.update(parameters, found.root, found.coupled, found.salt)
        return parameters

    def committed(self):
        if self.simulation.snapshots_only:
            return max(self.snapshots or [0])
        return self.synced if self.simulation.power else self.appended

    # ---- changes

    def truncate(self, version, keep_snapshots=False):
        """Back to `version`. A floor above it is void (R27)."""
        self.log = {step: kept for step, kept in self.log.items() if step < version}
        self.appended, self.synced = min(self.appended, version), min(self.synced, version)
        self.floor = min(self.floor, version)
        if not keep_snapshots:
            self.snapshots = {at: kept for at, kept in self.snapshots.items() if at <= version}

    def begin_anew(self, version, parameters):
        self.change += 1
        self.log, self.appended, self.synced, self.floor = {}, version, version, version
        self.snapshots = {version: parameters}

    def drop_below(self, version):
        """What leads to `version` stays: a version that is pinned need not be a snapshot (R27)."""
        begin = max([snapshot for snapshot in self.snapshots if snapshot <= version] or [0])
        self.snapshots = {at: kept for at, kept in self.snapshots.items() if at >= begin}
        self.log = {step: kept for step, kept in self.log.items() if step >= begin}

    def power_cut(self):
        self.log = {step: kept for step, kept in self.log.items() if step < self.synced}
        self.appended = self.synced


class host:
    """Its number of boots, and what is on its disk."""

    def __init__(self, number):
        self.number, self.up, self.boot, self.stores = number, True, 1, {}


class journal(with_history):
    """The coordinator's journal: a small linearizable map. What depends on a write is sent after it (R15)."""

    def __init__(self, simulation):
        self.owner = 0  # the term: the incarnation of the coordinator that may write
        self.history = {0: (0, simulation.first_revision)}
        self.incarnations, self.base = {}, 0  # the newest of each role; `base` jumps when a journal was lost
        self.places = {}  # role -> host of its newest incarnation
        self.sets = {}  # PS shard -> (number, ((host, identity), ...)): who is in sync (R25)
        self.evaluations, self.parked, self.done, self.lost = {}, frozenset(), False, False
        self.renewed = -1e9  # the coordinator's sign of life
        self.gave_up = (0, ())  # the term that gave up last, and the unbroken run of those that did: (host, hosts heard)

    def copy(self):
        other = journal.__new__(journal)
        other.__dict__.update(self.__dict__)
        return other
