"""Evictions of pods as an API server of Kubernetes and its disruption controller do them: what PodDisruptionBudgets let go, and what not."""

import json
import math
import time

from api_objects import RESOURCES, labels_of, refusal
from object_conditions import condition_of, is_ready, set_condition, stamp, time_of

API_VERSION = "policy/v1"
DELETION_TIMEOUT_S = 120  # a pod whose eviction was let and that is not deleted by then is counted again
RETRY_AFTER_S = 10
DISRUPTED_MAX = 2000
COUNTED_AS_NONE = ("Succeeded", "Failed", "Pending")  # phases of pods that no budget guards
GROUPS = {"Job": ".batch"}  # of kinds that may control pods
VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


class not_countable(Exception):
    """Of the owner of a pod nobody can say how many pods it wants."""


# ---- the disruption controller

def selects(budget, pod):
    """A selector that is missing selects nothing, an empty one all."""
    selector = budget["spec"].get("selector")
    return selector is not None and selector.get("matchLabels", {}).items() <= labels_of(pod).items()


def scaled(wanted, of):
    """A number, or a share such as "50%", rounded up."""
    return wanted if isinstance(wanted, int) else math.ceil(int(wanted.removesuffix("%")) * of / 100)


def expected_scale(pods):
    """How many pods their controllers want: no controller that is played here has a scale; pods without one are left out."""
    for pod in pods:
        for owner in pod["metadata"].get("ownerReferences", ()):
            if owner.get("controller"):
                resource = RESOURCES.get(owner["kind"], f"{owner['kind'].lower()}s") + GROUPS.get(owner["kind"], "")
                raise not_countable(f"{resource} does not implement the scale subresource")
    return 0


def wanted_of(spec, pods):
    """@returns expectedPods and desiredHealthy"""
    if "maxUnavailable" in spec:
        expected = expected_scale(pods)
        return expected, max(0, expected - scaled(spec["maxUnavailable"], expected))
    least = spec.get("minAvailable")
    if least is None:
        return 0, 0
    expected = len(pods) if isinstance(least, int) else expected_scale(pods)
    return expected, scaled(least, expected)


def look_at_budget(space, budget):
    """Brings its status up to date."""
    pods = [pod for pod in space.of("Pod") if selects(budget, pod)]
    status, now = budget.setdefault("status", {}), time.time()
    before = json.dumps(status)
    try:
        expected, desired = wanted_of(budget["spec"], pods)
    except not_countable as why:
        status["disruptionsAllowed"] = 0
        set_condition(budget, "DisruptionAllowed", "False", "SyncFailed", str(why), observedGeneration=status.get("observedGeneration", 0))
    else:
        disrupted = {pod["metadata"]["name"]: moment for pod in pods if "deletionTimestamp" not in pod["metadata"]
                     and (moment := status.get("disruptedPods", {}).get(pod["metadata"]["name"])) and now - time_of(moment) <= DELETION_TIMEOUT_S}
        healthy = sum(is_ready(pod) and "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted for pod in pods)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status |= {"expectedPods": expected, "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed,
                   "disruptedPods": disrupted, "observedGeneration": budget["metadata"].get("generation", 1)}
        tell_whether_allowed(budget)
    if json.dumps(budget["status"]) != before:
        space.note("MODIFIED", "PodDisruptionBudget", budget)


def tell_whether_allowed(budget):
    is_allowed = budget["status"]["disruptionsAllowed"] > 0
    set_condition(budget, "DisruptionAllowed", str(is_allowed), "SufficientPods" if is_allowed else "InsufficientPods",
                  observedGeneration=budget["status"]["observedGeneration"])


# ---- the subresource

def evict(space, name, eviction, dry_run=None):
    """@param eviction an Eviction; dry_run: what the query says of it  @returns the Status of success. Raises refusal"""
    if (eviction.get("apiVersion"), eviction.get("kind")) != (API_VERSION, "Eviction"):
        raise refusal(400, f"no kind \"{eviction.get('kind')}\" is registered for version \"{eviction.get('apiVersion')}\"", "BadRequest")
    if eviction.get("metadata", {}).get("name") != name:
        raise refusal(400, "name in URL does not match name in Eviction object", "BadRequest")
    options = dict(eviction.get("deleteOptions") or {})
    if dry_run and not options.get("dryRun"):
        options["dryRun"] = [dry_run]
    pod = space.there("Pod", name)
    if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] not in COUNTED_AS_NONE:
        ask_budgets(space, pod, bool(options.get("dryRun")))
    disrupt(space, pod, "EvictionByEvictionAPI", "Eviction API: evicting", options)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def ask_budgets(space, pod, is_dry):
    budgets = [one for one in space.of("PodDisruptionBudget") if selects(one, pod)]
    if len(budgets) > 1:
        raise refusal(500, TWO_BUDGETS)
    for budget in budgets:
        if is_ready(pod) or not lets_unready_go(budget):
            take_one(space, budget, pod["metadata"]["name"], is_dry)


def lets_unready_go(budget):
    """A pod that is not ready is none of those it counts."""
    status = budget.get("status", {})
    is_enough = status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0
    return budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or is_enough


def take_one(space, budget, pod, is_dry):
    """Of the disruptions that it allows."""
    name, status = budget["metadata"]["name"], budget.get("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        raise too_many(f"The disruption budget {name} is still being processed by the server.", RETRY_AFTER_S)
    if len(status.get("disruptedPods", ())) > DISRUPTED_MAX:
        raise refusal(403, f'poddisruptionbudget.policy "{name}" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB'
                      " controller", "Forbidden")
    if status["disruptionsAllowed"] == 0:
        raise too_many(why_none(budget))
    if is_dry:
        return
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = status.get("disruptedPods", {}) | {pod: stamp()}
    tell_whether_allowed(budget)
    space.note("MODIFIED", "PodDisruptionBudget", budget)


def why_none(budget):
    name, status, condition = budget["metadata"]["name"], budget["status"], condition_of(budget, "DisruptionAllowed")
    if condition.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {condition['message']}"
    return f"The disruption budget {name} needs {status['desiredHealthy']} healthy pods and has {status['currentHealthy']} currently"


def too_many(cause, retry_after_s=0):
    """429, as clients know it from a server that is busy; with a cause that says it is not."""
    made = refusal(429, VIOLATED, "TooManyRequests", {"Retry-After": str(retry_after_s)} if retry_after_s else ())
    made.status["details"] = {"causes": [{"reason": "DisruptionBudget", "message": cause}]} | (
        {"retryAfterSeconds": retry_after_s} if retry_after_s else {})
    return made


def disrupt(space, pod, reason, message, options=()):
    """Deletes a pod, on which the reason is told before."""
    options = dict(options)
    space.check_preconditions("Pod", pod, options.pop("preconditions", {}))
    if options.get("dryRun"):
        return
    if set_condition(pod, "DisruptionTarget", "True", reason, message):
        space.note("MODIFIED", "Pod", pod)
    space.delete("Pod", pod["metadata"]["name"], options)
