"""Who may what of an API server, and how much there may be, for api_cases."""

from api_asker import expect, wait_for
from api_scene import CASES, HELD, case, with_own_namespace


@case(CASES)
def stranger_is_refused(at):
    """a token that nobody has is refused: 401"""
    at.server.with_token("nobody-has-this").list("Pod").expect(401)


@case(CASES)
def account_may_what_its_role_says(at):
    """without a rule an account is refused (403 Forbidden) and a SelfSubjectAccessReview says so; with one it may that, and that alone"""
    name, of_account = account_of(at)
    space = at.server.name_space
    of_account.list("Pod").expect(403, "Forbidden", "cannot list resource", name)
    expect(not reviewed(of_account, "list", space), "the review says that it may")
    give_right(at, name, "pods", "list")
    wait_for(lambda: of_account.list("Pod").code == 200, "the rule helps")
    expect(reviewed(of_account, "list", space) and not reviewed(of_account, "create", space), "the review says something else")
    of_account.create("Pod", at.name(), {"spec": at.pod()}).expect(403, "Forbidden", "cannot create resource")


def account_of(at):
    """One that may nothing. @returns its name, and who asks with its token"""
    name = at.name()
    at.server.create("ServiceAccount", name).expect(201)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = at.server.ask("POST", at.server.path("ServiceAccount", name) + "/token", asked).expect(201)["status"]["token"]
    of_account = at.server.with_token(token)
    wait_for(lambda: of_account.list("Pod").code == 403, "it may nothing")
    return name, of_account


def give_right(at, account, resource, verb):
    """By a Role of its own."""
    name = at.name()
    at.server.create("Role", name, {"rules": [{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]}).expect(201)
    subject = {"kind": "ServiceAccount", "name": account, "namespace": at.server.name_space}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    at.server.create("RoleBinding", name, {"subjects": [subject], "roleRef": role}).expect(201)


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
