"""What a primary knows of the other stores of its PS shard, whom it counts, and what it sends to whom (R21-R26)."""

from actor import violation
from keeper import NOT_HERE
from stores import cut

RECORDS_AT_ONCE = 3


class copies:
    """A member is (host, identity). `in_sync` is the newest set that was heard of: (number, members)."""

    def __init__(self, primary, in_sync):
        self.primary, self.simulation = primary, primary.simulation
        self.in_sync, self.candidates = in_sync, ()
        self.asked = None  # (number of the set it is based on, member): for whom the coordinator was asked
        self.said = {}  # identity -> the newest `have` of that store
        self.lost = set()  # identities that are not there any more
        self.keeper_starts = {}  # identity of a candidate -> start of its keeper
        self.begun = {}  # identity -> change number that the newest order to begin anew names

    # ---- whom it counts

    def counted(self):
        """R22: the set as it was last heard, and who was asked for, from before that is asked."""
        members = [member for member in self.in_sync[1] if member[1] != self.primary.store.identity]
        return members + [self.asked[1]] if self.asked and self.simulation.bug != "count_late" else members

    def counts(self, identity):
        return any(identity == member[1] for member in self.counted())

    def is_candidate(self, identity):
        """Such a store may be begun anew, one that is counted never (R23)."""
        return (identity not in [member for _, member in self.in_sync[1]]
                and not (self.asked and self.asked[1][1] == identity))

    def held(self, identity, snapshots=False):
        """What a store holds of the primary's timeline; None: it has not spoken to this start."""
        said = self.said.get(identity)
        if said is None:
            return None
        versions = said.snapshots if snapshots else said.versions
        if self.simulation.bug == "ack_timeline":
            return versions
        return cut(versions, said.timeline, self.primary.timeline, self.primary.store.history)

    def common(self, versions):
        """R21: which of `versions` every counted store has, too."""
        for _, identity in self.counted():
            versions &= self.held(identity) or {0}
        return versions

    # ---- what stores say

    def on_have(self, said, identity):
        """@returns whether it is news."""
        before = self.said.get(identity)
        if before and before.sequence >= said.sequence:
            return False
        self.said[identity] = said._replace(heard=self.simulation.now)
        return True

    def on_no_have(self, identity, start, why):
        if why == NOT_HERE:
            self.lost.add(identity)
        else:
            self.keeper_starts[identity] = max(start, self.keeper_starts.get(identity, 0))
            self.ship(identity)

    def look_for_losses(self, identity):
        """R24: a counted store that holds less than D has lost what it acknowledged."""
        said = self.said[identity]
        if said.timeline == self.primary.timeline and self.counts(identity) and max(said.versions) < self.primary.committed:
            self.has_lost_data(identity)

    def has_lost_data(self, identity):
        """As if its identity were gone."""
        self.simulation.checks.has_lost_data(self.primary.number, identity)
        self.lost.add(identity)

    # ---- who is to be counted

    def ask_for(self, identity):
        """Asks for the candidate that has just spoken, if it is filled and nobody else was asked for."""
        for member in self.candidates:
            if member[1] == identity and not self.asked and self.filled(identity):
                self.asked = (self.in_sync[0], member)
                self.simulation.checks.relied_on(self.primary.number, identity, self.said[identity])
                self.repeat_ask()

    def repeat_ask(self):
        if self.asked:
            self.primary.send("C", "add", self.primary.number, self.primary.incarnation, *self.asked)

    def filled(self, identity):
        """R23: it holds all that the primary's store can restore from its floor to D, or to what was found, and the snapshots."""
        kept, versions, snapshots = self.primary.store, self.held(identity), self.held(identity, snapshots=True)
        if versions is None or self.said[identity].timeline != self.primary.timeline:
            return False
        if self.under_way(identity, self.said[identity].change) and self.simulation.bug != "begun_late":
            return False
        end = self.primary.committed
        if self.simulation.bug != "fill_to_D":
            end = max(end, self.primary.found)
        if self.simulation.bug == "newest_base":
            return max(versions) >= end
        return (all(version in versions for version in kept.durable() if kept.floor <= version <= end) and max(versions) >= end
                and all(version in snapshots for version in kept.snapshots if kept.floor <= version <= end))

    def under_way(self, identity, change):
        """R23: an order to begin it anew was sent that it would still obey."""
        return self.begun.get(identity, -1) >= change

    def on_set(self, in_sync, candidates):
        """@returns whether the set is a newer one: whatever was asked for is decided then, or void (R22)."""
        newer = in_sync[0] > self.in_sync[0]
        if newer:
            self.in_sync, self.asked = in_sync, None
        self.candidates = tuple(member for member in candidates if member not in self.in_sync[1])
        return newer

    # ---- what is sent to whom

    def oldest(self):
        """R23: copies are filled from the oldest version on that the primary's store leads on from."""
        kept = self.primary.store
        if self.simulation.bug == "newest_base":
            return max(kept.snapshots or {0})
        return 0 if 0 in kept.log and kept.appended > 0 else min(kept.snapshots or {0})

    def lacking(self, identity):
        """What the store lacks, a part of it at a time."""
        said, kept = self.said.get(identity), self.primary.store
        if said is None or said.timeline != self.primary.timeline:
            return []
        if self.simulation.snapshots_only:
            missing = [version for version in sorted(kept.snapshots) if version and version not in said.snapshots]
            return [("snapshot", version, kept.snapshots[version]) for version in missing[:1]]
        version = self.oldest()
        if not self.leads_on(said, version) or self.is_candidate(identity) and self.begun.get(identity) == said.change:
            if self.is_candidate(identity):
                return self.begin_anew(identity, version)
            if not self.leads_on(said, max(version, said.floor)):
                self.has_lost_data(identity)
                return []
            if self.simulation.bug != "from_oldest":
                version = max(said.versions)  # it begins above, at a floor that this primary has not heard of
        items = self.what_follows(said, version)
        if not self.is_candidate(identity):
            self.simulation.checks.can_append(self.primary.number, said, items)
        return items

    @staticmethod
    def leads_on(said, version):
        """Whether it has all from `version` to its end, so that records can be appended there."""
        if version not in said.restorable:
            return False
        while version + 1 in said.restorable:
            version += 1
        return version >= said.end

    def begin_anew(self, identity, version):
        """R23: the order names the change number that it was decided upon; it is repeated until that has passed."""
        kept = self.primary.store
        if version not in kept.snapshots:
            return []
        self.begun[identity] = self.said[identity].change
        return [("begin", self.begun[identity], version, kept.snapshots[version])]

    def what_follows(self, said, version):
        kept, items = self.primary.store, []
        while version + 1 in said.versions:
            version += 1
        while version in kept.log and version < kept.appended and len(items) < RECORDS_AT_ONCE:
            items.append(("record", version, kept.log[version]))
            version += 1
        above = [snapshot for snapshot in kept.snapshots if snapshot > version]
        if not items and above and version not in kept.log:
            items.append(("snapshot", min(above), kept.snapshots[min(above)]))
        return items + [("make", snapshot) for snapshot in sorted(kept.snapshots)
                        if snapshot in said.versions and snapshot not in said.snapshots and snapshot >= kept.floor]

    def receivers(self):
        """Who is counted, and candidates on hosts that hold no counted store."""
        bug, hosts = self.simulation.bug, [host for host, _ in self.counted()]
        candidates = [member for member in self.candidates if member[0] not in hosts or bug == "asked_anew"]
        late = [self.asked[1]] if self.asked and bug == "count_late" else []
        return self.counted() + candidates + late

    def ship(self, only=None):
        primary = self.primary
        for host, identity in self.receivers():
            if (only is not None and identity != only) or host == primary.host:
                continue
            may_be_made = (host, identity) not in self.in_sync[1] and (
                not self.asked or (host, identity) != self.asked[1] or self.simulation.bug == "asked_anew")
            primary.send(("K", host), "copy", primary.number, primary.incarnation, identity, may_be_made,
                         self.keeper_starts.get(identity, 0), self.in_sync, primary.timeline, primary.store.history,
                         primary.store.floor, self.lacking(identity))

    # ---- what the coordinator is told

    def status(self, own):
        """What all counted stores have of `own`, so that one message says it of one moment (R26)."""
        versions, snapshots, known, on_timeline = set(own), set(self.primary.store.snapshots), True, True
        for _, identity in self.counted():
            held = self.held(identity)
            if held is None:
                known = False
                continue
            versions &= held
            snapshots &= self.held(identity, snapshots=True)
            on_timeline = on_timeline and self.said[identity].timeline == self.primary.timeline
        if not known:
            versions, snapshots = {0}, set()
        ages = {identity: self.simulation.now - self.said[identity].heard if identity in self.said else 10**6
                for _, identity in self.counted()}
        end = snapshots if on_timeline else set()
        return versions, snapshots, known, end, ages
