"""What an API server of Kubernetes that is played keeps: objects of namespaces, what changed, and what it admits."""

import base64
import bisect
import copy
import json
import re
import threading
import time
import typing
import uuid

from object_conditions import stamp

KINDS = {("", "pods"): "Pod", ("", "configmaps"): "ConfigMap", ("", "events"): "Event", ("", "serviceaccounts"): "ServiceAccount",
         ("", "resourcequotas"): "ResourceQuota", ("", "limitranges"): "LimitRange", ("", "namespaces"): "Namespace", ("", "nodes"): "Node",
         ("batch", "jobs"): "Job", ("policy", "poddisruptionbudgets"): "PodDisruptionBudget", ("rbac.authorization.k8s.io", "roles"): "Role",
         ("rbac.authorization.k8s.io", "rolebindings"): "RoleBinding"}
RESOURCES = {kind: resource for (_, resource), kind in KINDS.items()}
PAGE_MAX = 500
STREAM_LOOK_S = 0.2
BOOKMARK_EVERY_S, BOOKMARK_BEFORE_END_S = 60, 2  # as the server's watch cache
FIRST_VERSION = 1000  # what is older was compacted before it began
GRACE_S = 30
MERGE_PATCH = "application/merge-patch+json"
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


class refusal(Exception):
    def __init__(self, code, message, reason="", headers=(), causes=()):
        super().__init__(message)
        self.code, self.headers = code, dict(headers)
        self.status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
        if causes:
            self.status["details"] = {"causes": [{"reason": one} for one in causes]}


def merged(into, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    made = dict(into) if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value)
    return made


def quantity(text):
    number, unit = re.match(r"([0-9.]+)([A-Za-z]*)$", str(text)).groups()
    return float(number) * UNITS[unit]


def selected(query):
    """What tells by the labels of an object whether a query chooses it."""
    wanted = dict(pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair).items()
    return lambda labels: wanted <= labels.items()


def labels_of(one):
    return one["metadata"].get("labels", {})


def is_over(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


class change(typing.NamedTuple):
    """Of an object, which is as it was then: what is told of it is written once, however many watch."""

    version: int
    what: str
    space: str
    kind: str
    labels: dict
    text: str


class api_history:
    """What changed in all namespaces, in one order, for those who watch."""

    def __init__(self, lock):
        self.version = self.oldest = self.furthest = FIRST_VERSION  # furthest: before what was restored
        self.changes = []  # all after the version `oldest`
        self.pages = {}  # token of a list that goes on -> (version, the rest)
        self.changed = threading.Condition(lock)
        self.generation, self.is_over, self.is_silent = 0, False, False  # streams of older generations end
        self.expires_in_stream = False  # 410 as an event of a stream that begins well, as most servers do it

    def give_version(self, one):
        self.version += 1
        one["metadata"].setdefault("uid", str(uuid.uuid4()))
        one["metadata"].setdefault("creationTimestamp", stamp())
        one["metadata"]["resourceVersion"] = str(self.version)

    def note(self, what, space, kind, one):
        with self.changed:
            self.give_version(one)
            self.changes.append(change(self.version, what, space, kind, dict(labels_of(one)), json.dumps(one)))
            self.changed.notify_all()

    def compact(self):
        """What was before cannot be watched any more, and no list goes on. By then versions are higher than any was."""
        with self.changed:
            self.version = self.oldest = max(self.version, self.furthest) + 1
            self.changes = []
            self.pages.clear()
            self.changed.notify_all()

    def restore(self, version):
        """It is as it was then. Streams that have come further hear nothing until this has too (kubernetes/kubernetes#107457)."""
        with self.changed:
            self.furthest = max(self.version, self.furthest)
            self.version, self.changes = version, [one for one in self.changes if one.version <= version]
            self.pages.clear()

    def cut(self):
        """All streams end."""
        with self.changed:
            self.generation += 1
            self.changed.notify_all()

    def silence(self, is_silent):
        """Streams stay open, and nothing comes of them meanwhile."""
        with self.changed:
            self.is_silent = is_silent
            self.changed.notify_all()

    def stop(self):
        self.is_over = True
        self.cut()

    def expired(self, since):
        return refusal(410, f"too old resource version: {since} ({self.oldest})", "Expired")

    def watch(self, since, space, kind, fits, lasts_s):
        """@returns a generator of events, as JSON"""
        if since < self.oldest and not self.expires_in_stream:
            raise self.expired(since)
        return self.stream(since, (space, kind, fits), self.generation, time.monotonic() + lasts_s)

    def stream(self, since, wanted, generation, until):
        bookmark_at = min(time.monotonic() + BOOKMARK_EVERY_S, until - BOOKMARK_BEFORE_END_S)
        while time.monotonic() < until:
            with self.changed:
                if self.generation != generation or self.is_over:
                    return
                if since < self.oldest:
                    yield json.dumps({"type": "ERROR", "object": self.expired(since).status})
                    return
                new = [] if self.is_silent else self.changes[bisect.bisect_right(self.changes, since, key=lambda one: one.version):]
                is_due = not self.is_silent and time.monotonic() >= bookmark_at
                if not new and not is_due:
                    self.changed.wait(STREAM_LOOK_S)
                    continue
                since = max(since, self.version)
            yield from chosen_events(new, *wanted)
            if is_due:
                bookmark_at = time.monotonic() + BOOKMARK_EVERY_S
                yield json.dumps({"type": "BOOKMARK", "object": {"kind": wanted[1], "metadata": {"resourceVersion": str(since)}}})

    def list(self, kind, all_there, query):
        """A page, as JSON. All pages of a list are of one moment."""
        limit = min(PAGE_MAX, int(query.get("limit", PAGE_MAX)) or PAGE_MAX)
        if "continue" in query:
            if query["continue"] not in self.pages:
                raise refusal(410, "The provided continue parameter is too old to display a consistent list result.", "Expired")
            version, items = self.pages[query["continue"]]
        else:
            version, items = self.version, [json.dumps(one) for one in all_there]
        meta = {"resourceVersion": str(version)}
        if len(items) > limit:
            meta["continue"] = base64.b64encode(f"{version}/{len(self.pages)}".encode()).decode()
            meta["remainingItemCount"] = len(items) - limit
            self.pages[meta["continue"]] = version, items[limit:]
        return f'{{"kind": "{kind}List", "apiVersion": "v1", "metadata": {json.dumps(meta)}, "items": [{", ".join(items[:limit])}]}}'


def chosen_events(changes, space, kind, fits):
    for one in changes:
        if (one.space, one.kind) == (space, kind) and fits(one.labels):
            yield f'{{"type": "{one.what}", "object": {one.text}}}'


class api_space:
    """The objects of one namespace.
    @param objects (kind, name) -> object; whoever made it may add to it behind this. players: who are told of changes: on_job(space, name)
    that a Job was patched, on_pod(space, made) that a Pod was made, on_end(space, going) that one is to end, and says whether somebody
    will tell when it has"""

    def __init__(self, name, history, objects, players):
        self.name, self.history, self.objects, self.players = name, history, objects, players
        self.created = {}  # (kind, name) -> time.time() of its POST
        self.events = []
        self.is_ending = False

    def of(self, kind):
        return [self.objects[key] for key in sorted(key for key in self.objects if key[0] == kind)]

    def note(self, what, kind, one):
        one["metadata"]["namespace"] = self.name
        self.history.note(what, self.name, kind, one)

    # ---- reads

    def there(self, kind, name):
        if (kind, name) not in self.objects:
            raise refusal(404, f'{RESOURCES.get(kind, kind)} "{name}" not found', "NotFound")
        if "uid" not in self.objects[kind, name]["metadata"]:  # it was applied behind this
            self.history.give_version(self.objects[kind, name])
        return self.objects[kind, name]

    def list(self, kind, query):
        fits = selected(query)
        return self.history.list(kind, [one for one in self.of(kind) if fits(labels_of(one))], query)

    def watch(self, kind, query):
        lasts_s = int(query.get("timeoutSeconds", 1800))
        return self.history.watch(int(query["resourceVersion"]), self.name, kind, selected(query), lasts_s)

    # ---- changes

    def create(self, kind, made):
        name = made.get("metadata", {}).get("name", "")
        self.validate(kind, name, made)
        if self.is_ending:
            raise refusal(403, f'{RESOURCES[kind]} "{name}" is forbidden: unable to create new content in namespace {self.name} because it is'
                          " being terminated", "Forbidden", causes=["NamespaceTerminating"])
        if (kind, name) in self.objects:
            raise refusal(409, f'{RESOURCES[kind]} "{name}" already exists', "AlreadyExists")
        if kind == "Pod":
            self.admit_pod(name, made)
            made["status"] = {"phase": "Pending"}
        elif kind == "PodDisruptionBudget":
            made["metadata"]["generation"] = 1
        self.created[kind, name] = time.time()
        if kind == "Event":
            self.events.append(made)
        else:
            self.objects[kind, name] = made
        self.note("ADDED", kind, made)
        told = copy.deepcopy(made)
        if kind == "Pod":
            self.players.on_pod(self, made)
        return told

    def validate(self, kind, name, made):
        if not NAME.match(name):
            raise refusal(422, f'{kind} "{name}" is invalid: metadata.name: Invalid value: "{name}": a lowercase RFC 1123 subdomain', "Invalid")
        if kind == "Pod" and not made.get("spec", {}).get("containers"):
            raise refusal(422, f'Pod "{name}" is invalid: spec.containers: Required value', "Invalid")

    def admit_pod(self, name, made):
        for one in self.of("ResourceQuota"):
            used = sum(not is_over(one) for one in self.of("Pod"))
            hard = int(one["spec"]["hard"].get("pods", PAGE_MAX))
            if used + 1 > hard:
                raise refusal(403, f'pods "{name}" is forbidden: exceeded quota: {one["metadata"]["name"]}, requested: pods=1, used: pods={used},'
                              f" limited: pods={hard}", "Forbidden")
        for limits in (limits for one in self.of("LimitRange") for limits in one["spec"]["limits"] if limits["type"] == "Container"):
            for container in made["spec"]["containers"]:
                most = limits.get("max", {}).get("memory")
                wanted = container.get("resources", {}).get("limits", {}).get("memory")
                if most and wanted and quantity(wanted) > quantity(most):
                    raise refusal(403, f'pods "{name}" is forbidden: maximum memory usage per Container is {most}, but limit is {wanted}',
                                  "Forbidden")

    def patch(self, kind, name, content_type, body):
        if content_type != MERGE_PATCH:
            raise refusal(415, "the body of the request was in an unknown format - accepted media types include: " + MERGE_PATCH,
                          "UnsupportedMediaType")
        before, patch = self.there(kind, name), json.loads(body)
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != before["metadata"].get("resourceVersion"):
            raise refusal(409, f'Operation cannot be fulfilled on {RESOURCES[kind]} "{name}": the object has been modified; please apply your'
                          " changes to the latest version and try again", "Conflict")
        after = merged(before, patch)
        if kind == "Pod" and after["spec"] != before["spec"]:
            raise refusal(422, f'Pod "{name}" is invalid: spec: Forbidden: pod updates may not change fields', "Invalid")
        if kind == "PodDisruptionBudget" and after["spec"] != before["spec"]:
            after["metadata"]["generation"] = before["metadata"].get("generation", 1) + 1
        before.update(after)  # the same object, which others have
        self.note("MODIFIED", kind, before)
        if "deletionTimestamp" in before["metadata"] and not before["metadata"].get("finalizers"):
            self.remove(before, kind)
        elif kind == "Job":
            self.players.on_job(self, name)
        return before

    def patch_status(self, kind, name, body):
        """The subresource: of the object nothing else changes."""
        one, patch = self.there(kind, name), json.loads(body)
        one["status"] = merged(one.get("status", {}), patch.get("status", {}))
        self.note("MODIFIED", kind, one)
        return one

    def check_preconditions(self, kind, one, wanted):
        """Of a deletion."""
        meta = one["metadata"]
        for key, called in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if wanted.get(key) not in (None, meta[key]):
                raise refusal(409, f'Operation cannot be fulfilled on {RESOURCES[kind]} "{meta["name"]}": Precondition failed: {called} in'
                              f" precondition: {wanted[key]}, {called} in object meta: {meta[key]}", "Conflict")

    def delete(self, kind, name, options):
        going = self.there(kind, name)
        self.check_preconditions(kind, going, options.get("preconditions", {}))
        if not options.get("dryRun"):
            self.end(going, kind, options.get("gracePeriodSeconds"))
        return going

    def end(self, going, kind="Pod", grace_s=None):
        """It is deleted in order."""
        with self.history.changed:
            if kind == "Pod" and grace_s is None:
                grace_s = going["spec"].get("terminationGracePeriodSeconds", GRACE_S)
            if "deletionTimestamp" not in going["metadata"]:
                if kind != "Pod" and not going["metadata"].get("finalizers"):
                    self.remove(going, kind)
                    return
                going["metadata"] |= {"deletionTimestamp": stamp(grace_s or 0), "deletionGracePeriodSeconds": grace_s or 0}
                self.note("MODIFIED", kind, going)
                is_awaited = kind == "Pod" and self.players.on_end(self, going)
                if not is_awaited or grace_s == 0:
                    self.remove(going, kind)
            elif kind == "Pod" and grace_s == 0:
                self.remove(going, kind)

    def remove(self, gone, kind="Pod"):
        """It has ended; it is gone when nobody holds it by a finalizer."""
        with self.history.changed:
            if gone["metadata"].get("finalizers"):
                return
            if self.objects.pop((kind, gone["metadata"]["name"]), None) is not None:
                self.note("DELETED", kind, gone)

    def collect_garbage(self):
        """Objects whose owners are gone end."""
        with self.history.changed:
            while True:
                uids = {one["metadata"].get("uid") for one in self.objects.values()}
                orphans = [(kind, one) for (kind, _), one in self.objects.items()
                           if one["metadata"].get("ownerReferences") and "deletionTimestamp" not in one["metadata"]
                           and not any(owner["uid"] in uids for owner in one["metadata"]["ownerReferences"])]
                for kind, one in orphans:
                    self.end(one, kind)
                if all(kind == "Pod" for kind, _ in orphans):
                    return
