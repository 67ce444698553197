"""What dlrun relies on in an API server of Kubernetes, each a case that asks one: by the names of its function and by what it proves.

Each case gets a `scene`. Cases of FAULTS order faults, and so need a server that takes orders (fake_api_server); cases of RUNNING need
pods that run, and so an image with a shell.
"""

import itertools

from api_asker import expect, wait_for

CASES, FAULTS, RUNNING = [], [], []
NOWHERE = {"dlrun.test/none": "here"}  # no node has that label: such a pod stays Pending, and takes no image
HELD = ["dlrun.test/held"]
NO_IMAGE = "registry.k8s.io/pause:3.10"


def case(into):
    def add(function):
        into.append(function)
        return function
    return add


class scene:
    """A server, a namespace of the cases' own, and names that nobody has there.
    @param image with a shell, for pods that run; None: there is none"""

    numbers = itertools.count()

    def __init__(self, server, image=None):
        self.server, self.image = server, image

    def name(self):
        return f"case-{next(self.numbers)}"

    def pod(self, words=None, memory=None):
        """What may be in a Pod. @param words of a shell: it runs"""
        container = {"name": "main", "image": self.image if words else NO_IMAGE}
        if words:
            container["command"] = ["sh", "-c", words]
        if memory:
            container["resources"] = {"limits": {"memory": memory}}
        return {"containers": [container], "terminationGracePeriodSeconds": 5, "restartPolicy": "OnFailure"} | ({} if words else {"nodeSelector": NOWHERE})

    def make_pod(self, name=None, labels=None, **metadata):
        """@returns it"""
        return self.server.create("Pod", name or self.name(), {"spec": self.pod()}, {"labels": labels or {}, **metadata}).expect(201)

    def make_job(self, name, words=None, **spec):
        template = {"metadata": {"labels": {"of": name}}, "spec": self.pod(words)}
        return self.server.create("Job", name, {"spec": {"template": template, "backoffLimit": 100, **spec}}).expect(201)

    def pods(self, **labels):
        told = self.server.list("Pod", labelSelector=",".join(f"{key}={value}" for key, value in labels.items())).expect(200)
        return told["items"]

    def version(self):
        return self.server.list("Pod", limit=1).expect(200)["metadata"]["resourceVersion"]

    def owner(self, kind, one, **more):
        return {"apiVersion": "batch/v1" if kind == "Job" else "v1", "kind": kind, "name": one["metadata"]["name"], "uid": one["metadata"]["uid"], **more}

    def fault(self, fault, **how):
        self.server.ask("POST", "/faults", {"fault": fault, **how}).expect(201)


# ---- one object

@case(CASES)
def object_is_made(at):
    """what is made has a uid, a resourceVersion and a time, and is read back"""
    made = at.server.create("ConfigMap", at.name(), {"data": {"hosts": "2"}}).expect(201)
    found = at.server.get("ConfigMap", made["metadata"]["name"]).expect(200)
    expect(found["data"] == {"hosts": "2"} and found["metadata"] == made["metadata"], f"{found} is not {made}")
    expect(all(made["metadata"].get(key) for key in ("uid", "resourceVersion", "creationTimestamp")), f"it lacks something: {made}")


@case(CASES)
def name_is_taken_once(at):
    """a second object of a name is refused: 409 AlreadyExists"""
    made = at.make_pod()
    at.server.create("Pod", made["metadata"]["name"], {"spec": at.pod()}).expect(409, "AlreadyExists")


@case(CASES)
def name_is_taken_again_when_it_is_free(at):
    """a name that is free again gives an object with another uid"""
    made = at.make_pod()
    name = made["metadata"]["name"]
    at.server.delete("Pod", name, gracePeriodSeconds=0).expect(200)
    wait_for(lambda: at.server.is_gone("Pod", name), "it is gone")
    expect(at.make_pod(name)["metadata"]["uid"] != made["metadata"]["uid"], "it has the uid of the one that is gone")


@case(CASES)
def nonsense_is_refused(at):
    """an object that cannot be is refused: 422 Invalid"""
    at.server.create("Pod", at.name(), {"spec": {"containers": []}}).expect(422, "Invalid")
    at.server.create("ConfigMap", "Not-A-Name").expect(422, "Invalid")


@case(CASES)
def missing_is_missing(at):
    """what is not there is 404 NotFound, for reading, changing and deleting"""
    for answered in (at.server.get("Pod", "none"), at.server.patch("Job", "none", {}), at.server.delete("Pod", "none")):
        answered.expect(404, "NotFound")


@case(CASES)
def patch_merges(at):
    """a merge patch sets and removes keys, keeps the others, and gives another resourceVersion"""
    made = at.server.create("ConfigMap", at.name(), {"data": {"a": "1", "b": "2"}}).expect(201)
    after = at.server.patch("ConfigMap", made["metadata"]["name"], {"data": {"a": None, "c": "3"}}).expect(200)
    expect(after["data"] == {"b": "2", "c": "3"}, f"it has become {after['data']}")
    expect(after["metadata"]["uid"] == made["metadata"]["uid"], "it has another uid")
    expect(after["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"], "its resourceVersion has not changed")


@case(CASES)
def patch_of_an_older_version_is_refused(at):
    """a patch that names a resourceVersion is refused where the object has another: 409 Conflict"""
    made = at.server.create("ConfigMap", at.name()).expect(201)
    name, version = made["metadata"]["name"], made["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version, "annotations": {"a": "1"}}}
    at.server.patch("ConfigMap", name, patch).expect(200)
    at.server.patch("ConfigMap", name, patch | {"data": {"b": "2"}}).expect(409, "Conflict")
    expect("data" not in at.server.get("ConfigMap", name).expect(200), "what was refused is there")


@case(CASES)
def patch_of_no_known_kind_is_refused(at):
    """a patch of a content type that is none is refused: 415"""
    made = at.server.create("ConfigMap", at.name()).expect(201)
    at.server.patch("ConfigMap", made["metadata"]["name"], {}, "application/json").expect(415)


@case(CASES)
def pod_cannot_become_another(at):
    """the containers of a pod cannot be changed, its annotations can: 422 Invalid"""
    name = at.make_pod()["metadata"]["name"]
    at.server.patch("Pod", name, {"metadata": {"annotations": {"a": "1"}}}).expect(200)
    at.server.patch("Pod", name, {"spec": {"nodeSelector": {"b": "2"}, "hostname": "other"}}).expect(422, "Invalid")


@case(CASES)
def events_are_taken(at):
    """an Event of an object is taken"""
    of = at.server.create("ConfigMap", at.name()).expect(201)
    involved = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": at.server.name_space, "name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}
    at.server.create("Event", at.name(), {"involvedObject": involved, "reason": "Tried", "message": "an event", "type": "Normal"}).expect(201)


# ---- deletion

@case(CASES)
def deletion_names_a_uid(at):
    """a deletion that names another uid is refused (409 Conflict) and deletes nothing; with the right one it deletes"""
    made = at.make_pod()
    name = made["metadata"]["name"]
    at.server.delete("Pod", name, preconditions={"uid": "00000000-0000-0000-0000-000000000000"}).expect(409, "Conflict")
    expect("deletionTimestamp" not in at.server.get("Pod", name).expect(200)["metadata"], "it is deleted nevertheless")
    at.server.delete("Pod", name, preconditions={"uid": made["metadata"]["uid"]}).expect(200)
    wait_for(lambda: at.server.is_gone("Pod", name), "it is gone")


@case(CASES)
def deletion_waits_for_whoever_holds_it(at):
    """an object that is to go has a deletionTimestamp, is told of as MODIFIED, and stays until nobody holds it: then as DELETED"""
    version, name = at.version(), at.name()
    at.make_pod(name, finalizers=HELD)
    with at.server.watching("Pod", version, 120) as seen:
        at.server.delete("Pod", name).expect(200)
        wait_for(lambda: ("MODIFIED", name) in seen.kinds(name), "its deletion is told")
        expect("deletionTimestamp" in at.server.get("Pod", name).expect(200)["metadata"], "it has no deletionTimestamp")
        expect(("DELETED", name) not in seen.kinds(name), "it is gone, though it is held")
        at.server.patch("Pod", name, {"metadata": {"finalizers": None}}).expect(200)
        wait_for(lambda: seen.kinds(name)[-1] == ("DELETED", name), "its end is told")
    expect(at.server.is_gone("Pod", name), "it is still there")


@case(CASES)
def garbage_follows_its_owner(at):
    """pods that a ConfigMap owns go with it, and so with the Job that owns the ConfigMap"""
    for through_job in (False, True):
        name = at.name()
        job = at.make_job(name, suspend=True)
        owner = at.server.create("ConfigMap", name, {}, {"ownerReferences": [at.owner("Job", job, blockOwnerDeletion=False)]}).expect(201)
        at.make_pod(name, ownerReferences=[at.owner("ConfigMap", owner, controller=True, blockOwnerDeletion=False)])
        if through_job:
            at.server.delete("Job", name, propagationPolicy="Background").expect(200)
        else:
            at.server.delete("ConfigMap", name, propagationPolicy="Background").expect(200)
        wait_for(lambda one=name: at.server.is_gone("Pod", one), "the pod goes with its owner")
        expect(at.server.is_gone("ConfigMap", name), "the ConfigMap is there")


@case(CASES)
def garbage_is_what_has_no_owner(at):
    """a pod whose owner was never there is collected"""
    name = at.name()
    at.make_pod(name, ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-0000-0000-000000000000"}])
    wait_for(lambda: at.server.is_gone("Pod", name), "it is collected")


# ---- lists and watches

@case(CASES)
def pages_are_of_one_moment(at):
    """a list in pages has each object once, and none that was made between two pages"""
    label = at.name()
    names = {at.make_pod(labels={"page": label})["metadata"]["name"] for _ in range(5)}
    found, query = [], {"labelSelector": f"page={label}", "limit": 2}
    pages = 0
    while True:
        told = at.server.list("Pod", **query).expect(200)
        pages, found = pages + 1, found + [one["metadata"]["name"] for one in told["items"]]
        at.make_pod(labels={"page": label})
        if not told["metadata"].get("continue"):
            break
        query["continue"] = told["metadata"]["continue"]
    expect((pages, sorted(found)) == (3, sorted(names)), f"{pages} pages have {sorted(found)}, not {sorted(names)}")


@case(CASES)
def lists_choose_by_labels(at):
    """a list of a selector has the objects with all its labels, and no others"""
    label = at.name()
    at.make_pod(labels={"x": label})
    both = at.make_pod(labels={"x": label, "y": label})["metadata"]["name"]
    expect([one["metadata"]["name"] for one in at.pods(x=label, y=label)] == [both], "others are listed")


@case(CASES)
def watch_tells_all_since_a_list(at):
    """a watch from the version of a list tells all that came since, once, in order"""
    version, name = at.version(), at.name()
    at.make_pod(name)
    with at.server.watching("Pod", version, 120, labelSelector="") as seen:
        wait_for(lambda: seen.kinds(name), "what was before it is told")
        at.server.patch("Pod", name, {"metadata": {"annotations": {"a": "1"}}}).expect(200)
        wait_for(lambda: any("annotations" in one["object"]["metadata"] for one in seen.of(name)), "its change is told")
        at.server.delete("Pod", name, gracePeriodSeconds=0).expect(200)
        wait_for(lambda: seen.kinds(name)[-1][0] == "DELETED", "its end is told")
        kinds = [what for what, _ in seen.kinds(name)]
    middle = set(kinds[1:-1])
    expect(kinds[0] == "ADDED" and kinds[-1] == "DELETED" and middle == {"MODIFIED"}, f"it tells {kinds}")


@case(CASES)
def watch_goes_on_from_an_event(at):
    """a watch from the version of an event tells what came after it, and not that event"""
    version, first, second = at.version(), at.name(), at.name()
    at.make_pod(first)
    with at.server.watching("Pod", version, 60) as seen:
        wait_for(lambda: seen.kinds(first), "it is told")
        version = seen.of(first)[0]["object"]["metadata"]["resourceVersion"]
    at.make_pod(second)
    with at.server.watching("Pod", version, 60) as seen:
        wait_for(lambda: seen.kinds(second), "what came meanwhile is told")
        expect(("ADDED", first) not in seen.kinds(), f"what was told is told again: {seen.kinds()}")


@case(CASES)
def watch_chooses_by_labels(at):
    """a watch of a selector tells of the objects with its labels alone"""
    version, label = at.version(), at.name()
    other = at.make_pod()["metadata"]["name"]
    wanted = at.make_pod(labels={"z": label})["metadata"]["name"]
    with at.server.watching("Pod", version, 60, labelSelector=f"z={label}") as seen:
        wait_for(lambda: seen.kinds(wanted), "it is told")
        expect(not seen.kinds(other), "another one is told too")


@case(CASES)
def watch_ends_when_it_is_to_and_says_how_far_it_is(at):
    """a watch ends by itself after timeoutSeconds, and before tells its version by a bookmark, from which it goes on"""
    version = at.version()
    events = at.server.watch("Pod", version, 5, labelSelector="none=such")
    expect([one["type"] for one in events] == ["BOOKMARK"], f"it tells {events}")
    name, version = at.name(), events[0]["object"]["metadata"]["resourceVersion"]
    at.make_pod(name)
    with at.server.watching("Pod", version, 60) as seen:
        wait_for(lambda: seen.kinds(name), "it goes on from the bookmark")


@case(CASES)
def watch_from_too_long_ago_is_refused(at):
    """a watch from a version that is not kept is refused with 410, as HTTP status or as an ERROR event of the stream"""
    events = at.server.watch("Pod", "1", 10)
    expect([(one["type"], one["object"].get("code")) for one in events] == [("ERROR", 410)], f"it tells {events}")


# ---- who may what

@case(CASES)
def stranger_is_refused(at):
    """a token that nobody has is refused: 401"""
    at.server.with_token("nobody-has-this").list("Pod").expect(401)


@case(CASES)
def account_may_what_its_role_says(at):
    """without a rule an account is refused (403 Forbidden) and a SelfSubjectAccessReview says so; with one it may that, and that alone"""
    name, space = at.name(), at.server.name_space
    at.server.create("ServiceAccount", name).expect(201)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = at.server.ask("POST", at.server.path("ServiceAccount", name) + "/token", asked).expect(201)["status"]["token"]
    of_account = at.server.with_token(token)
    wait_for(lambda: of_account.list("Pod").code == 403, "it may nothing")
    of_account.list("Pod").expect(403, "Forbidden", "cannot list resource", name)
    expect(not reviewed(of_account, "list", space), "the review says that it may")
    at.server.create("Role", name, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}).expect(201)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": space}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    at.server.create("RoleBinding", name, {"subjects": [subject], "roleRef": role}).expect(201)
    wait_for(lambda: of_account.list("Pod").code == 200, "the rule helps")
    expect(reviewed(of_account, "list", space) and not reviewed(of_account, "create", space), "the review says something else")
    of_account.create("Pod", at.name(), {"spec": at.pod()}).expect(403, "Forbidden", "cannot create resource")


def reviewed(of, verb, space):
    attributes = {"verb": verb, "group": "", "version": "v1", "resource": "pods", "namespace": space}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
    return of.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).expect(201)["status"]["allowed"]


@case(CASES)
def quota_is_kept(at):
    """one pod more than a quota lets is refused with 403 and `exceeded quota`, until there is room again"""
    with_own_namespace(at, quota_in)


def quota_in(at):
    at.server.create("ResourceQuota", "one", {"spec": {"hard": {"pods": "1"}}}).expect(201)
    wait_for(lambda: at.server.get("ResourceQuota", "one").told.get("status", {}).get("hard"), "it is in force")
    first = at.make_pod()["metadata"]["name"]
    at.server.create("Pod", at.name(), {"spec": at.pod()}).expect(403, "Forbidden", "exceeded quota")
    at.server.delete("Pod", first, gracePeriodSeconds=0).expect(200)
    wait_for(lambda: at.server.create("Pod", at.name(), {"spec": at.pod()}).code == 201, "there is room again")


@case(CASES)
def limits_are_kept(at):
    """a container that may use more memory than a LimitRange lets is refused with 403 and both numbers"""
    with_own_namespace(at, limits_in)


def limits_in(at):
    at.server.create("LimitRange", "small", {"spec": {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]}}).expect(201)
    wait_for(lambda: at.server.create("Pod", at.name(), {"spec": at.pod(memory="128Mi")}).code == 403, "it is in force")
    at.server.create("Pod", at.name(), {"spec": at.pod(memory="128Mi")}).expect(403, "Forbidden", "maximum memory usage per Container is 64Mi")
    at.server.create("Pod", at.name(), {"spec": at.pod(memory="32Mi")}).expect(201)


@case(CASES)
def namespace_that_ends_takes_nothing(at):
    """in a namespace that is being deleted nothing is made: 403 with cause NamespaceTerminating; it is gone when all in it is"""
    with_own_namespace(at, ending_of)


def ending_of(at):
    at.server.create("ConfigMap", "held", {}, {"finalizers": HELD}).expect(201)
    at.server.delete("Namespace", at.server.name_space).expect(200)
    refused = at.server.create("ConfigMap", "late").expect(403, "Forbidden")
    causes = [one.get("reason") for one in refused.get("details", {}).get("causes", [])]
    expect("NamespaceTerminating" in causes, f"the causes are {causes}")
    at.server.patch("ConfigMap", "held", {"metadata": {"finalizers": None}}).expect(200)
    wait_for(lambda: at.server.is_gone("Namespace", at.server.name_space), "it is gone")


def with_own_namespace(at, do):
    inner = scene(at.server.with_token(at.server.token), at.image)
    inner.server.name_space = make_namespace(at.server, f"{at.server.name_space}-{at.name()}")
    try:
        do(inner)
    finally:
        at.server.delete("Namespace", inner.server.name_space)


def make_namespace(server, name):
    """@returns its name, when pods can be made in it: its service account is there"""
    server.create("Namespace", name).expect(201)
    path = server.path("ServiceAccount", "default", space=name)
    wait_for(lambda: server.ask("GET", path).code == 200, "the namespace has its service account")
    return name


# ---- Jobs

@case(CASES)
def job_has_the_pods_it_wants(at):
    """a Job makes its pods, which it controls; makes none while it is suspended, and another one for one that is deleted"""
    name = at.name()
    job = at.make_job(name, parallelism=2, suspend=True)
    at.server.patch("Job", name, {"spec": {"suspend": False}}).expect(200)
    pods = wait_for(lambda: len(found := at.pods(of=name)) == 2 and found, "two pods are there")
    expect({one["uid"] for pod in pods for one in pod["metadata"]["ownerReferences"] if one.get("controller")} == {job["metadata"]["uid"]},
           "it does not control them")
    first = pods[0]["metadata"]["name"]
    at.server.delete("Pod", first, gracePeriodSeconds=0).expect(200)
    wait_for(lambda: len(found := at.pods(of=name)) == 2 and first not in {one["metadata"]["name"] for one in found}, "another one is made")
    at.server.patch("Job", name, {"spec": {"suspend": True}}).expect(200)
    wait_for(lambda: not at.pods(of=name), "they go when it is suspended")


@case(CASES)
def job_takes_its_pods_along(at):
    """the pods of a Job that is deleted in the background go"""
    name = at.name()
    at.make_job(name)
    wait_for(lambda: at.pods(of=name), "its pod is there")
    at.server.delete("Job", name, propagationPolicy="Background").expect(200)
    wait_for(lambda: at.server.is_gone("Job", name) and not at.pods(of=name), "both are gone")


@case(CASES)
def job_says_how_it_ended(at):
    """annotations and backoffLimit of a Job can be patched, and stay"""
    name = at.name()
    at.make_job(name, suspend=True)
    at.server.patch("Job", name, {"metadata": {"annotations": {"dlrun/exit-code": "1"}}, "spec": {"backoffLimit": 0}}).expect(200)
    found = at.server.get("Job", name).expect(200)
    expect((found["metadata"]["annotations"]["dlrun/exit-code"], found["spec"]["backoffLimit"]) == ("1", 0), f"it has become {found}")


# ---- pods that run

def conditions_of(at, name):
    return {one["type"] for one in at.server.get("Job", name).expect(200).get("status", {}).get("conditions", []) if one["status"] == "True"}


@case(RUNNING)
def running_pod_ends_in_order(at):
    """a pod that runs and is deleted has a deletionTimestamp with its grace, and is gone when its container has ended"""
    name = at.name()
    at.server.create("Pod", name, {"spec": at.pod("sleep 600")}).expect(201)
    running = wait_for(lambda: (found := at.server.get("Pod", name).expect(200))["status"]["phase"] == "Running" and found, "it runs")
    expect(running["status"].get("podIP") and running["status"]["containerStatuses"][0]["state"].get("running") is not None, f"{running['status']}")
    going = at.server.delete("Pod", name).expect(200)
    expect(going["metadata"].get("deletionGracePeriodSeconds") == 5 and "deletionTimestamp" in going["metadata"], f"{going['metadata']}")
    wait_for(lambda: at.server.is_gone("Pod", name), "it is gone")


@case(RUNNING)
def container_is_started_again_in_its_pod_until_its_job_fails(at):
    """a container that fails is started again in its pod; a Job whose backoffLimit becomes 0 has then Failed, and its pods go"""
    name = at.name()
    at.make_job(name, "exit 3")
    def restarted():
        return [one for one in at.pods(of=name) if any(part["restartCount"] > 0 for part in one["status"].get("containerStatuses", []))]

    [pod] = wait_for(restarted, "it is started again")
    expect(pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 3, f"{pod['status']}")
    at.server.patch("Job", name, {"spec": {"backoffLimit": 0}}).expect(200)
    wait_for(lambda: "Failed" in conditions_of(at, name), "the Job has failed")
    wait_for(lambda: not at.pods(of=name), "its pods go")


@case(RUNNING)
def job_is_complete_when_its_pod_ends_well(at):
    """a Job whose pod ends with exit code 0 is Complete"""
    name = at.name()
    at.make_job(name, "exit 0")
    wait_for(lambda: "Complete" in conditions_of(at, name), "the Job is complete")


# ---- faults that are ordered

@case(FAULTS)
def busy_server_says_when(at):
    """429 and 503 come with Retry-After, for as many requests as was ordered"""
    for code in (429, 503):
        at.fault("refuse", request="^list pods", code=code, message="busy", headers={"Retry-After": "7"}, times=2)
        for _ in range(2):
            refused = at.server.list("Pod")
            refused.expect(code)
            expect(refused.headers.get("Retry-After") == "7", f"the headers are {dict(refused.headers)}")
        at.server.list("Pod").expect(200)


@case(FAULTS)
def compaction_ends_lists_and_watches(at):
    """after a compaction a list in pages does not go on (410 Expired), and a watch from before is refused"""
    for _ in range(2):
        at.make_pod()
    page = at.server.list("Pod", limit=1).expect(200)["metadata"]
    at.fault("compact")
    at.server.list("Pod", limit=1, **{"continue": page["continue"]}).expect(410, "Expired")
    events = at.server.watch("Pod", page["resourceVersion"], 10)
    expect([(one["type"], one["object"].get("code")) for one in events] == [("ERROR", 410)], f"it tells {events}")


@case(FAULTS)
def watch_that_is_under_way_hears_of_a_compaction(at):
    """a compaction ends a watch that is under way with an ERROR event of 410"""
    with at.server.watching("Pod", at.version(), 60) as seen:
        wait_for(lambda: seen.code == 200, "it has begun")
        at.fault("compact")
        wait_for(lambda: seen.events and seen.events[-1]["object"].get("code") == 410, "it hears of it")


@case(FAULTS)
def watch_hears_nothing_of_a_restored_server(at):
    """what was restored to an earlier state has lower versions: a watch from before hears nothing of what comes then, and a list tells it"""
    kept, lost, new = at.name(), at.name(), at.name()
    at.make_pod(kept)
    at.fault("save")
    at.make_pod(lost)
    for number in range(50):  # it takes as many changes until versions have come as far again
        at.server.patch("Pod", lost, {"metadata": {"annotations": {"a": str(number)}}}).expect(200)
    version = at.version()
    with at.server.watching("Pod", version, 60) as seen:
        wait_for(lambda: seen.code == 200, "it has begun")
        at.fault("restore")
        at.server.delete("Pod", kept, gracePeriodSeconds=0).expect(200)
        at.make_pod(new)
        seen.thread.join(timeout=1)
        expect(seen.thread.is_alive() and not seen.events, f"it tells {seen.events}")
    listed = [one["metadata"]["name"] for one in at.pods()]
    expect(new in listed and not {kept, lost} & set(listed), f"the list tells {listed}")
    expect(int(at.version()) < int(version), "versions are not lower")


@case(FAULTS)
def streams_are_cut_and_silent(at):
    """a stream that is silent stays open and tells nothing; one that is cut ends, and what came meanwhile is told to the next"""
    version, name = at.version(), at.name()
    with at.server.watching("Pod", version, 60) as seen:
        wait_for(lambda: seen.code == 200, "it has begun")
        at.fault("silence")
        try:
            at.make_pod(name)
            seen.thread.join(timeout=1)
            expect(seen.thread.is_alive() and not seen.kinds(name), f"it tells {seen.kinds()}")
            at.fault("cut")
            wait_for(lambda: not seen.thread.is_alive(), "it ends")
        finally:
            at.fault("speech")
    with at.server.watching("Pod", version, 60) as seen:
        wait_for(lambda: seen.kinds(name), "the next tells it")


@case(FAULTS)
def token_is_refused_once(at):
    """401 once, for the same token that is taken the next time"""
    at.fault("refuse", request="^list pods", code=401, message="Unauthorized", reason="Unauthorized")
    at.server.list("Pod").expect(401)
    at.server.list("Pod").expect(200)
