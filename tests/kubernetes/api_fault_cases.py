"""Faults that are ordered of an API server, for api_cases."""

from api_asker import expect, wait_for
from api_scene import FAULTS, case


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
