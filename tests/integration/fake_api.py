"""An API server of Kubernetes for tests: as much of one as dlrun asks, over TLS, with the rights that Roles give.

Objects are those of a test, (kind, name) -> object, of one namespace. What it is told of a Job it hands on, to whoever plays the
Job's controller, and what of Pods, to whoever plays the kubelets. Objects whose owners are gone are deleted. Pods can be watched.
Tokens expire, histories are compacted and streams are cut when a test says so, and requests are refused on order. What is not here:
validation, admission, watches of other kinds.
"""

import contextlib
import copy
import http.server
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse

NAMESPACE = "default"
KINDS = {("batch", "jobs"): "Job", ("", "events"): "Event", ("", "pods"): "Pod", ("", "configmaps"): "ConfigMap",
         ("policy", "poddisruptionbudgets"): "PodDisruptionBudget"}
REVIEWS = ("authorization.k8s.io", "selfsubjectaccessreviews")
PATH = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/v1(?:/namespaces/(?P<space>[^/]+))?/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?(?:\?(?P<query>.*))?$")
VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}
PAGE_MAX = 500
STREAM_LOOK_S = 0.2
MERGE_PATCH = "application/merge-patch+json"


class refusal(Exception):
    def __init__(self, code, message, reason="", headers=(), causes=()):
        super().__init__(message)
        self.code, self.headers = code, dict(headers)
        self.status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
        if causes:
            self.status["details"] = {"causes": [{"reason": one} for one in causes]}


def merged(into, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    made = dict(into) if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value)
    return made


class fake_api:
    """@param listener a socket that listens; certificate, key: files of its server; objects: of the cluster; on_job: is told the name
    of a Job that was patched; on_pod: is told a Pod that was made; on_end: is told a Pod that is to end, and says whether somebody will
    tell when it has"""

    def __init__(self, listener, certificate, key, objects, on_job=lambda name: None, on_pod=lambda made: None, on_end=lambda going: False):
        self.objects, self.on_job, self.on_pod, self.on_end = objects, on_job, on_pod, on_end
        self.history, self.oldest = [], 0  # (version, type, Pod as it was then); all after the version `oldest`
        self.created = {}  # (kind, name) -> time.time() of its POST
        self.stream_number, self.is_stopped, self.connections = 0, False, []  # streams of older numbers end
        self.tokens = {}  # token -> name of a service account
        self.asked, self.orders, self.events = [], [], []  # "get jobs/x"; (pattern, refusal), each for one request; Events
        self.version, self.lock = 0, threading.RLock()
        self.changed = threading.Condition(self.lock)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server = make_server(self, listener, context)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Nobody answers there any more, on no connection."""
        self.is_stopped = True
        for one in self.connections:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.cut_streams()
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
        self.server.server_close()

    def refuse_once(self, pattern, *refused, **how):
        """The next request that matches, as "patch jobs/x"."""
        self.orders.append((re.compile(pattern), refusal(*refused, **how)))

    # ---- one request

    def answer(self, method, path, headers, body):
        """@returns code and object"""
        found = PATH.match(path)
        if not found:
            raise refusal(404, f"the server could not find the requested resource {path}", "NotFound")
        group, resource, name = found["group"] or "", found["resource"], found["name"]
        query = dict(urllib.parse.parse_qsl(found["query"] or ""))
        verb = VERBS[method]
        if verb == "get" and name is None:
            verb = "watch" if query.get("watch") == "true" else "list"
        with self.lock:
            self.asked.append(f"{verb} {resource}" + (f"/{name}" if name else ""))
            for order in self.orders:
                if order[0].search(self.asked[-1]):
                    self.orders.remove(order)
                    raise order[1]
            account = self.tokens.get(headers.get("Authorization", "").removeprefix("Bearer "))
            if account is None:
                raise refusal(401, "Unauthorized", "Unauthorized")
            if (group, resource) == REVIEWS:
                return 201, self.review(account, json.loads(body))
            if found["space"] != NAMESPACE or not self.may(account, verb, group, resource, name):
                raise refusal(403, f'{resource}.{group} "{name or ""}" is forbidden: User "system:serviceaccount:{NAMESPACE}:{account}" cannot '
                              f'{verb} resource "{resource}" in API group "{group}" in the namespace "{found["space"]}"', "Forbidden")
            if verb in ("list", "watch"):
                return 200, getattr(self, f"on_{verb}")(KINDS[group, resource], query)
            return getattr(self, f"on_{verb}")(KINDS[group, resource], name, headers, body)

    # ---- lists and watches

    def chosen(self, query):
        wanted = dict(pair.split("=") for pair in query["labelSelector"].split(",")).items()
        return lambda one: wanted <= one["metadata"].get("labels", {}).items()

    def on_list(self, kind, query):
        """Pages are of what there is when they are asked for."""
        fits, limit, first = self.chosen(query), min(PAGE_MAX, int(query["limit"])), int(query.get("continue", 0))
        all_there = [one for (of, _), one in sorted(self.objects.items()) if of == kind and fits(one)]
        rest = {"continue": str(first + limit)} if first + limit < len(all_there) else {}
        return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": str(self.version)} | rest,
                "items": copy.deepcopy(all_there[first:first + limit])}

    def on_watch(self, kind, query):
        """@returns a generator of events"""
        assert kind == "Pod" and query["allowWatchBookmarks"] == "true" and 240 <= int(query["timeoutSeconds"]) <= 300, query
        since = int(query["resourceVersion"])
        if since < self.oldest:
            raise refusal(410, f"too old resource version: {since} ({self.oldest})", "Expired")
        return self.stream(since, self.chosen(query), self.stream_number, time.monotonic() + int(query["timeoutSeconds"]))

    def stream(self, since, fits, number, until):
        while time.monotonic() < until:
            with self.changed:
                if self.stream_number != number or self.is_stopped:
                    return
                if since < self.oldest:
                    yield {"type": "ERROR", "object": refusal(410, "The resourceVersion for the provided watch is too old.", "Expired").status}
                    return
                new = [one for one in self.history if one[0] > since]
                if not new:
                    self.changed.wait(STREAM_LOOK_S)
                    continue
                since = self.version
            for _, what, one in new:
                if fits(one):
                    yield {"type": what, "object": one}
            yield {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": str(since)}}}

    def cut_streams(self):
        with self.changed:
            self.stream_number += 1
            self.changed.notify_all()

    def compact(self):
        """What was before cannot be watched any more."""
        with self.changed:
            self.oldest, self.history = self.version + 1, []
            self.version += 1
            self.changed.notify_all()

    def note(self, what, pod):
        with self.changed:
            self.give_version(pod)
            self.history.append((self.version, what, copy.deepcopy(pod)))
            self.changed.notify_all()

    # ---- one object

    def on_get(self, kind, name, _headers, _body):
        return 200, self.there(kind, name)

    def there(self, kind, name):
        if (kind, name) not in self.objects:
            raise refusal(404, f'{kind} "{name}" not found', "NotFound")
        if "uid" not in self.objects[kind, name]["metadata"]:  # it was applied behind this
            self.give_version(self.objects[kind, name])
        return self.objects[kind, name]

    def on_patch(self, kind, name, headers, body):
        if headers.get("Content-Type") != MERGE_PATCH:
            raise refusal(415, "the body of the request was in an unknown format", "UnsupportedMediaType")
        before, patch = self.there(kind, name), json.loads(body)
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != before["metadata"].get("resourceVersion"):
            raise refusal(409, f'Operation cannot be fulfilled on {kind} "{name}": the object has been modified', "Conflict")
        before.update(merged(before, patch))  # the same object, which others have
        self.give_version(before)
        if kind == "Job":
            self.on_job(name)
        return 200, before

    def on_create(self, kind, _name, _headers, body):
        made = json.loads(body)
        name = made["metadata"]["name"]
        if (kind, name) in self.objects:
            raise refusal(409, f'{kind} "{name}" already exists', "AlreadyExists")
        self.created[kind, name] = time.time()
        if kind == "Event":
            self.events.append(made)
        else:
            self.objects[kind, name] = made
        if kind != "Pod":
            self.give_version(made)
            return 201, made
        made["status"] = {"phase": "Pending"}
        self.note("ADDED", made)
        told = copy.deepcopy(made)
        self.on_pod(made)
        return 201, told

    def on_delete(self, kind, name, _headers, body):
        going, wanted = self.there(kind, name), json.loads(body)["preconditions"]["uid"]
        if going["metadata"]["uid"] != wanted:
            raise refusal(409, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {going['metadata']['uid']}", "Conflict")
        self.end(going)
        return 200, going

    def end(self, pod):
        """It is deleted in order."""
        with self.lock:
            if "deletionTimestamp" in pod["metadata"]:
                return
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.note("MODIFIED", pod)
            if not self.on_end(pod):
                self.remove(pod)

    def remove(self, pod):
        """It is gone."""
        with self.lock:
            if self.objects.pop(("Pod", pod["metadata"]["name"]), None) is not None:
                self.note("DELETED", pod)

    def collect_garbage(self):
        """Pods whose owners are gone end."""
        with self.lock:
            while True:
                uids = {one["metadata"].get("uid") for one in self.objects.values()}
                orphans = [(key, one) for key, one in self.objects.items() if one["metadata"].get("ownerReferences") and
                           not any(owner["uid"] in uids for owner in one["metadata"]["ownerReferences"])]
                for (kind, name), one in orphans:
                    if kind == "Pod":
                        self.end(one)
                    else:
                        del self.objects[kind, name]
                if all(kind == "Pod" for (kind, _), _ in orphans):
                    return

    def give_version(self, made):
        self.version += 1
        made["metadata"].setdefault("uid", f"uid-{self.version}")
        made["metadata"].update(resourceVersion=str(self.version), namespace=NAMESPACE)

    # ---- rights

    def may(self, account, verb, group, resource, name):
        """As the Roles say that are bound to the account."""
        for (kind, _), binding in list(self.objects.items()):
            if kind != "RoleBinding" or {"kind": "ServiceAccount", "name": account} not in binding["subjects"]:
                continue
            for rule in self.there("Role", binding["roleRef"]["name"])["rules"]:
                if group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"] and (
                        "resourceNames" not in rule or name in rule["resourceNames"]):
                    return True
        return False

    def review(self, account, asked):
        of = asked["spec"]["resourceAttributes"]
        allowed = of["namespace"] == NAMESPACE and self.may(account, of["verb"], of["group"], of["resource"], of.get("name"))
        return asked | {"status": {"allowed": allowed}}


def make_server(api, listener, context):
    class handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def handle(self):
            with contextlib.suppress(OSError):  # of whoever goes, or does not believe the certificate
                super().handle()

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {}
            try:
                code, told = api.answer(self.command, self.path, self.headers, body)
            except refusal as why:
                code, told, headers = why.code, why.status, why.headers
            if hasattr(told, "__next__"):
                return self.stream(told)
            text = json.dumps(told).encode()
            self.send_response(code)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def stream(self, events):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in events:
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PATCH = do_DELETE = answer

        def log_message(self, *_):
            pass

    class server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def get_request(self):
            connection, address = self.socket.accept()
            made = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            api.connections.append(made)
            return made, address

    made = server(listener.getsockname(), handler, bind_and_activate=False)
    made.socket.close()
    made.socket = listener
    return made
