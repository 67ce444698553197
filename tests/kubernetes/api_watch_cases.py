"""Lists and watches of an API server, for api_cases."""

from api_asker import expect, wait_for
from api_scene import CASES, case


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
