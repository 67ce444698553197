"""Jobs and pods that run, for api_cases."""

from api_asker import expect, wait_for
from api_scene import CASES, RUNNING, case


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
