"""What cases of api_cases are made of: lists of them, and the scene that each gets."""

import itertools

from api_asker import wait_for

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
