"""Conditions that the status of an object of Kubernetes has: whether they hold, since when, and why."""

import datetime


def stamp(in_s=0):
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=in_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_of(stamp):
    """As time.time() says it."""
    return datetime.datetime.fromisoformat(stamp).timestamp()


def condition_of(one, kind):
    """@returns it; {}: the object has none of that kind"""
    return next((found for found in one.get("status", {}).get("conditions", ()) if found["type"] == kind), {})


def does_hold(one, kind):
    return condition_of(one, kind).get("status") == "True"


def is_ready(one):
    """A Pod or a Node."""
    return does_hold(one, "Ready")


def set_condition(one, kind, status, reason="", message="", **more):
    """@returns whether it was another one"""
    before = condition_of(one, kind)
    made = {"type": kind, "status": status, **{key: text for key, text in (("reason", reason), ("message", message)) if text}, **more}
    if made == {key: value for key, value in before.items() if key != "lastTransitionTime"}:
        return False
    is_same = before.get("status") == status and "lastTransitionTime" in before
    made["lastTransitionTime"] = before["lastTransitionTime"] if is_same else stamp()
    others = [found for found in one.setdefault("status", {}).get("conditions", ()) if found["type"] != kind]
    one["status"]["conditions"] = [*others, made]
    return True
