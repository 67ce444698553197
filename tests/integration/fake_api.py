"""An API server of Kubernetes for tests: as much of one as dlrun asks, over TLS, with the rights that Roles give.

Objects are those of a test, (kind, name) -> object, of one namespace. What it is told of a Job it hands on, to whoever plays the
Job's controller. Tokens expire when a test says so, and requests are refused on order. What is not here: validation, admission, watches.
"""

import contextlib
import http.server
import json
import re
import ssl
import threading

NAMESPACE = "default"
KINDS = {("batch", "jobs"): "Job", ("", "events"): "Event"}
REVIEWS = ("authorization.k8s.io", "selfsubjectaccessreviews")
PATH = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/v1(?:/namespaces/(?P<space>[^/]+))?/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?(?:\?.*)?$")
VERBS = {"GET": "get", "POST": "create", "PATCH": "patch"}
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
    of a Job that was patched"""

    def __init__(self, listener, certificate, key, objects, on_job=lambda name: None):
        self.objects, self.on_job = objects, on_job
        self.tokens = {}  # token -> name of a service account
        self.asked, self.orders, self.events = [], [], []  # "get jobs/x"; (pattern, refusal), each for one request; Events
        self.version, self.lock = 0, threading.RLock()
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
        """Nobody answers there any more."""
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
        verb = VERBS[method]
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
            return getattr(self, f"on_{verb}")(KINDS[group, resource], name, headers, body)

    def on_get(self, kind, name, _headers, _body):
        return 200, self.there(kind, name)

    def there(self, kind, name):
        if (kind, name) not in self.objects:
            raise refusal(404, f'{kind} "{name}" not found', "NotFound")
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
        if kind == "Event":
            self.events.append(made)
        else:
            self.objects[kind, name] = made
        self.give_version(made)
        return 201, made

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
            text = json.dumps(told).encode()
            self.send_response(code)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = answer

        def log_message(self, *_):
            pass

    class server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def get_request(self):
            connection, address = self.socket.accept()
            return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    made = server(listener.getsockname(), handler, bind_and_activate=False)
    made.socket.close()
    made.socket = listener
    return made
