"""Evictions of pods by an API server, and what disruption budgets say to them, for api_cases.

No pod runs: that it does, and is ready, is written into its status, as its kubelet would.
"""

from api_asker import expect, wait_for
from api_rights_cases import account_of, give_right
from api_scene import CASES, HELD, case

COUNTS = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
NO_UID = "00000000-0000-0000-0000-000000000000"


def say_ready(at, name, status="True"):
    at.server.patch_status("Pod", name, {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]}).expect(200)


def guarded(at, *ready, metadata=(), **spec):
    """Pods of which the one is ready and another is not, and a budget. @returns its name, and those of the pods"""
    budget = at.name()
    names = [at.make_pod(labels={"guarded": budget}, finalizers=HELD, **dict(metadata))["metadata"]["name"] for _ in ready]
    for name, status in zip(names, ready):
        say_ready(at, name, status)
    at.server.create("PodDisruptionBudget", budget, {"spec": {"selector": {"matchLabels": {"guarded": budget}}, **spec}}).expect(201)
    return budget, names


def budget_of(at, name):
    return at.server.get("PodDisruptionBudget", name).expect(200)


def wait_for_counts(at, budget, *wanted):
    """@returns the budget whose status has these COUNTS, of what it wants now"""
    def has():
        found = budget_of(at, budget)
        status = found.get("status", {})
        is_new = status.get("observedGeneration") == found["metadata"]["generation"]
        return found if is_new and tuple(status.get(key) for key in COUNTS) == wanted else None

    return wait_for(has, f"{COUNTS} are {wanted}")


def is_going(at, name):
    return "deletionTimestamp" in at.server.get("Pod", name).expect(200)["metadata"]


def release(at, *names):
    """Pods that are held."""
    for name in names:
        at.server.patch("Pod", name, {"metadata": {"finalizers": None}})
        at.server.delete("Pod", name, gracePeriodSeconds=0)


def expect_refused(answered, *words):
    """By a budget: with a cause that says these."""
    refused = answered.expect(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
    [cause] = refused["details"]["causes"]
    expect(cause["reason"] == "DisruptionBudget" and all(word in cause["message"] for word in words), f"the cause is {cause}")


@case(CASES)
def budget_counts_pods_that_are_ready(at):
    """a budget tells how many pods there are, how many of them are ready, how many have to be, and how many may go; and again when it changes"""
    budget, names = guarded(at, "True", "True", "False", minAvailable=1)
    wait_for_counts(at, budget, 3, 2, 1, 1)
    at.server.patch("PodDisruptionBudget", budget, {"spec": {"minAvailable": 2}}).expect(200)
    wait_for_counts(at, budget, 3, 2, 2, 0)
    say_ready(at, names[2])
    found = wait_for_counts(at, budget, 3, 3, 2, 1)
    told = {one["type"]: (one["status"], one["reason"]) for one in found["status"]["conditions"]}
    expect(told == {"DisruptionAllowed": ("True", "SufficientPods")}, f"its conditions are {told}")
    release(at, *names)


@case(CASES)
def budget_without_a_number_lets_none_go(at):
    """a budget with neither minAvailable nor maxUnavailable lets no pod go that is ready"""
    budget, names = guarded(at, "True", unhealthyPodEvictionPolicy="AlwaysAllow")
    wait_for_counts(at, budget, 0, 1, 0, 0)
    expect_refused(at.server.evict(names[0]), "needs 0 healthy pods and has 1 currently")
    release(at, *names)


@case(CASES)
def eviction_waits_for_its_budget(at):
    """an eviction that a budget forbids is refused with 429, cause DisruptionBudget, both numbers and no Retry-After; one that it lets deletes"""
    budget, names = guarded(at, "True", "True", minAvailable=2)
    wait_for_counts(at, budget, 2, 2, 2, 0)
    refused = at.server.evict(names[0])
    expect_refused(refused, f"The disruption budget {budget} needs 2 healthy pods and has 2 currently")
    expect(refused.headers.get("Retry-After") is None, "it says when to come again")
    expect(not is_going(at, names[0]), "it goes nevertheless")
    at.server.patch("PodDisruptionBudget", budget, {"spec": {"minAvailable": 1}}).expect(200)
    wait_for_counts(at, budget, 2, 2, 1, 1)
    done = at.server.evict(names[0]).expect(201)
    expect((done["kind"], done["status"]) == ("Status", "Success"), f"it is answered {done}")
    expect(is_going(at, names[0]), "it does not go")
    release(at, *names)


@case(CASES)
def budget_gives_each_disruption_once(at):
    """of two evictions where one is allowed the second is refused, though nothing was counted between them; a pod that goes is not counted"""
    budget, names = guarded(at, "True", "True", "True", minAvailable=2)
    wait_for_counts(at, budget, 3, 3, 2, 1)
    at.server.evict(names[0]).expect(201)
    expect_refused(at.server.evict(names[1]), "needs 2 healthy pods")
    expect(not is_going(at, names[1]), "both go")
    wait_for_counts(at, budget, 3, 2, 2, 0)
    release(at, *names)


@case(CASES)
def pods_that_are_not_ready_go_where_the_budget_says_so(at):
    """a pod that runs and is not ready is guarded while too few are ready, but not with AlwaysAllow; one that is pending is not guarded"""
    budget, names = guarded(at, "True", "False", "False", minAvailable=2)
    wait_for_counts(at, budget, 3, 1, 2, 0)
    expect_refused(at.server.evict(names[1]), "needs 2 healthy pods and has 1 currently")
    at.server.patch("PodDisruptionBudget", budget, {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}).expect(200)
    wait_for_counts(at, budget, 3, 1, 2, 0)
    at.server.evict(names[1]).expect(201)
    expect(is_going(at, names[1]) and not is_going(at, names[2]), "others go")
    expect_refused(at.server.evict(names[0]))
    pending = at.make_pod(labels={"guarded": budget})["metadata"]["name"]
    at.server.evict(pending).expect(201)
    release(at, *names)


@case(CASES)
def evicted_pod_says_why_before_it_goes(at):
    """a pod that is evicted has the condition DisruptionTarget, of reason EvictionByEvictionAPI, before it has a deletionTimestamp"""
    version, name = at.version(), at.name()
    at.make_pod(name, finalizers=HELD)
    with at.server.watching("Pod", version, 60) as seen:
        at.server.evict(name).expect(201)
        wait_for(lambda: any("deletionTimestamp" in one["object"]["metadata"] for one in seen.of(name)), "its deletion is told")
        told = [one["object"] for one in seen.of(name) if disruption_of(one["object"]) == ("True", "EvictionByEvictionAPI")]
    expect(told and "deletionTimestamp" not in told[0]["metadata"], f"it is told of {seen.of(name)}")
    release(at, name)


def disruption_of(pod):
    """Status and reason."""
    return next(((one["status"], one.get("reason")) for one in pod["status"].get("conditions", []) if one["type"] == "DisruptionTarget"), None)


@case(CASES)
def eviction_names_a_uid(at):
    """an eviction of another uid is refused (409 Conflict), one that names another pod too (400), and one of a pod that is not there (404)"""
    made = at.make_pod()
    name = made["metadata"]["name"]
    at.server.evict(name, preconditions={"uid": NO_UID}).expect(409, "Conflict")
    at.server.evict(name, called="another").expect(400, "BadRequest")
    at.server.evict("none").expect(404, "NotFound")
    expect(not is_going(at, name), "it goes nevertheless")
    at.server.evict(name, preconditions={"uid": made["metadata"]["uid"]}).expect(201)
    wait_for(lambda: at.server.is_gone("Pod", name), "it is gone")


@case(CASES)
def eviction_may_be_tried(at):
    """a dry run is answered as an eviction, by the query or the options of the deletion, and neither evicts nor counts"""
    budget, names = guarded(at, "True", "True", minAvailable=1)
    wait_for_counts(at, budget, 2, 2, 1, 1)
    for _ in range(2):
        at.server.evict(names[0], dryRun=["All"]).expect(201)
        at.server.evict(names[0], query="?dryRun=All").expect(201)
    found = at.server.get("Pod", names[0]).expect(200)
    expect("deletionTimestamp" not in found["metadata"] and disruption_of(found) is None, f"it has become {found}")
    expect(not budget_of(at, budget)["status"].get("disruptedPods"), "it is counted")
    at.server.patch("PodDisruptionBudget", budget, {"spec": {"minAvailable": 2}}).expect(200)
    wait_for_counts(at, budget, 2, 2, 2, 0)
    expect_refused(at.server.evict(names[0], dryRun=["All"]))
    release(at, *names)


@case(CASES)
def budget_cannot_count_what_has_no_scale(at):
    """a budget of shares, or of maxUnavailable, lets no pod go whose owner has no scale, such as a ConfigMap: its condition says SyncFailed"""
    owner = at.server.create("ConfigMap", at.name()).expect(201)
    metadata = {"ownerReferences": [at.owner("ConfigMap", owner, controller=True, blockOwnerDeletion=False)]}
    for spec in ({"maxUnavailable": 1}, {"minAvailable": "50%"}):
        budget, names = guarded(at, "True", "True", metadata=metadata, **spec)
        wait_for(lambda of=budget: any(one["reason"] == "SyncFailed" for one in budget_of(at, of).get("status", {}).get("conditions", [])), "it says so")
        expect(budget_of(at, budget)["status"]["disruptionsAllowed"] == 0, "it lets pods go")
        expect_refused(at.server.evict(names[0]))
        release(at, *names)
    budget, names = guarded(at, "True", "True", metadata=metadata, minAvailable=1)
    wait_for_counts(at, budget, 2, 2, 1, 1)
    release(at, *names)


@case(CASES)
def pod_of_two_budgets_is_not_evicted(at):
    """a pod that two budgets guard cannot be evicted: 500"""
    _, names = guarded(at, "True", minAvailable=0)
    selector = {"matchLabels": at.server.get("Pod", names[0]).expect(200)["metadata"]["labels"]}
    at.server.create("PodDisruptionBudget", at.name(), {"spec": {"selector": selector, "minAvailable": 0}}).expect(201)
    refused = at.server.evict(names[0]).expect(500)
    expect("more than one PodDisruptionBudget" in refused["message"], f"it says {refused}")
    release(at, *names)


@case(CASES)
def eviction_is_a_right_of_its_own(at):
    """who may create pods may not evict them, and who may create pods/eviction may"""
    name, of_account = account_of(at)
    pod = at.make_pod()["metadata"]["name"]
    give_right(at, name, "pods", "create")
    wait_for(lambda: of_account.create("Pod", at.name(), {"spec": at.pod()}).code == 201, "the rule helps")
    of_account.evict(pod).expect(403, "Forbidden", 'cannot create resource "pods/eviction"')
    give_right(at, name, "pods/eviction", "create")
    wait_for(lambda: of_account.evict(pod).code in (201, 404), "it may evict")
    wait_for(lambda: at.server.is_gone("Pod", pod), "it is gone")
