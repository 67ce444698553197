"""Single objects of an API server, and their deletion, for api_cases."""

from api_asker import expect, wait_for
from api_scene import CASES, HELD, case


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
