"""An API server of Kubernetes for tests: as much of one as dlrun asks, over TLS, with the rights that Roles give.

What it keeps is in api_objects, what it says to evictions in api_evictions, controllers behind it are in played_controllers. Of the objects
of its first namespace a test is the owner, (kind, name) -> object, and may add to them behind this. What it is told of a Job it hands on, to
whoever plays the Job's controller, and what of Pods, to whoever plays the kubelets. Tokens expire, histories are compacted, an etcd is
restored, streams are cut or silent when a test says so, and requests are refused on order. What is not here: schemas, defaults, admission
but quotas and limits, and what neither dlrun nor `kubectl drain` asks for.
tests/kubernetes/fake_api_server runs it alone; tests/kubernetes/api_conformance holds it to what real servers do.
"""

import contextlib
import copy
import http.server
import json
import re
import secrets
import socket
import ssl
import threading
import time
import urllib.parse

from api_evictions import evict
from api_objects import KINDS, api_history, api_space, refusal
from played_controllers import played_controllers

NAMESPACE = "default"
UNSPACED = ("namespaces", "nodes")  # which are in no namespace
ADMIN = None  # an account that may do everything
REVIEWS = ("authorization.k8s.io", "selfsubjectaccessreviews")
PATH = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/v1(?:/namespaces/(?P<space>[^/?]+)(?=/))?/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?"
                  r"(?:/(?P<part>[^/?]+))?(?:\?(?P<query>.*))?$")
VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}


class players:
    """Those who play controllers and kubelets: nobody."""

    def on_job(self, space, name):
        """A Job was patched."""

    def on_pod(self, space, made):
        """A Pod was made."""

    def on_end(self, space, going):
        """A Pod is to end. @returns whether somebody will tell when it has"""
        return False


class fake_api:
    """@param listener a socket that listens; certificate, key: files of its server; objects: of its first namespace"""

    def __init__(self, listener, certificate, key, objects, played_by=None):
        self.lock = threading.RLock()
        self.history, self.played_by = api_history(self.lock), played_by or players()
        self.space = api_space(NAMESPACE, self.history, objects, self.played_by)
        self.spaces, self.unspaced = {NAMESPACE: self.space}, api_space("", self.history, {}, self.played_by)
        self.unspaced.objects["Namespace", NAMESPACE] = {"kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.objects, self.created, self.events = self.space.objects, self.space.created, self.space.events
        self.tokens = {}  # token -> (namespace, name) of a service account, or ADMIN
        self.asked, self.asked_at = [], []  # "get jobs/x", and time.monotonic() of each
        self.orders = []  # [pattern, refusal, for how many requests]
        self.is_stopped, self.connections = False, []
        self.controllers = played_controllers(self)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.listen(listener)

    def listen(self, listener):
        self.server = make_server(self, listener, self.context)
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
        self.history.stop()
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
        self.server.server_close()

    def begin_again(self, listener):
        """With all that it had."""
        self.is_stopped, self.history.is_over = False, False
        self.connections.clear()
        self.listen(listener)
        self.thread.start()

    def refuse_once(self, pattern, *refused, **how):
        """The next request that matches, as "patch jobs/x"."""
        self.refuse(pattern, refusal(*refused, **how))

    def refuse(self, pattern, refused, times=1):
        with self.lock:
            self.orders.append([re.compile(pattern), refused, times])

    def cut_streams(self):
        self.history.cut()

    def compact(self):
        self.history.compact()

    def save(self):
        """A backup of its etcd."""
        with self.lock:
            self.saved = self.history.version, {name: copy.deepcopy(space.objects) for name, space in self.spaces.items()}

    def restore(self):
        """Of namespaces that were there and are."""
        with self.lock:
            version, saved = copy.deepcopy(self.saved)
            for name in saved.keys() & self.spaces.keys():
                self.spaces[name].objects.clear()
                self.spaces[name].objects.update(saved[name])
            self.history.restore(version)

    # ---- one request

    def answer(self, method, path, headers, body):
        """@returns code and object, or the text of one, or a generator of events"""
        found = PATH.match(path)
        if not found or method not in VERBS:
            raise refusal(404, "the server could not find the requested resource", "NotFound")
        group, resource, name, part = found["group"] or "", found["resource"], found["name"], found["part"]
        query = dict(urllib.parse.parse_qsl(found["query"] or ""))
        verb = VERBS[method]
        if verb == "get" and name is None:
            verb = "watch" if query.get("watch") == "true" else "list"
        with self.lock:
            self.asked.append("/".join((f"{verb} {resource}", *filter(None, (name, part)))))
            self.asked_at.append(time.monotonic())
            self.obey_orders()
            token = headers.get("Authorization", "").removeprefix("Bearer ")
            if token not in self.tokens:
                raise refusal(401, "Unauthorized", "Unauthorized")
            account = self.tokens[token]
            if (group, resource) == REVIEWS:
                return 201, self.review(account, json.loads(body))
            self.expect_right(account, verb, (group, resource, part), name, found["space"])
            if (group, resource) not in KINDS:
                raise refusal(404, "the server could not find the requested resource", "NotFound")
            kind, space = KINDS[group, resource], self.space_of(found["space"], resource)
            if part:
                return self.answer_part(space, kind, name, (verb, part), query, body)
            return self.answer_in(space, kind, name, verb, query, headers, body)

    def obey_orders(self):
        for order in self.orders:
            if order[0].search(self.asked[-1]):
                order[2] -= 1
                if order[2] <= 0:
                    self.orders.remove(order)
                raise order[1]

    def space_of(self, name, resource):
        if resource in UNSPACED:
            return self.unspaced
        if name not in self.spaces:
            raise refusal(404, f'namespaces "{name}" not found', "NotFound")
        return self.spaces[name]

    def answer_in(self, space, kind, name, verb, query, headers, body):
        if verb == "create":
            made = space.create(kind, json.loads(body))
            if kind == "Namespace":
                self.open_namespace(made["metadata"]["name"])
            return 201, made
        if verb == "patch":
            return 200, space.patch(kind, name, headers.get("Content-Type"), body)
        if verb == "delete":
            if kind == "Namespace":
                return 200, self.end_namespace(name)
            return 200, space.delete(kind, name, json.loads(body or b"{}"))
        return 200, space.there(kind, name) if verb == "get" else getattr(space, verb)(kind, query)

    def answer_part(self, space, kind, name, asked, query, body):
        """A subresource. @param asked verb and name of it"""
        if (kind, asked) == ("Pod", ("create", "eviction")):
            return 201, evict(space, name, json.loads(body), query.get("dryRun"))
        if kind in ("Pod", "Node") and asked == ("patch", "status"):
            return 200, space.patch_status(kind, name, body)
        if (kind, asked) == ("ServiceAccount", ("create", "token")):
            return 201, self.make_token(space, name)
        raise refusal(404, "the server could not find the requested resource", "NotFound")

    def make_token(self, space, name):
        """Of a service account."""
        space.there("ServiceAccount", name)
        token = secrets.token_hex(16)
        self.tokens[token] = space.name, name
        return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": {"token": token}}

    # ---- namespaces

    def open_namespace(self, name):
        self.spaces[name] = api_space(name, self.history, {}, self.played_by)
        self.spaces[name].create("ServiceAccount", {"kind": "ServiceAccount", "metadata": {"name": "default"}})

    def end_namespace(self, name):
        """It takes nothing new, and is gone when all in it is."""
        going, space = self.unspaced.there("Namespace", name), self.spaces[name]
        if not space.is_ending:
            space.is_ending = True
            going["metadata"]["deletionTimestamp"], going["status"] = "now", {"phase": "Terminating"}
            for (kind, _), one in list(space.objects.items()):
                space.end(one, kind)
        self.look_at_namespaces()
        return going

    def look_at_namespaces(self):
        for name in [name for name, space in self.spaces.items() if space.is_ending and not space.objects]:
            del self.spaces[name]
            self.unspaced.remove(self.unspaced.there("Namespace", name), "Namespace")

    # ---- rights

    def expect_right(self, account, verb, what, name, space):
        """@param what group, resource, and part of it or None"""
        if self.may(account, verb, what, name, space):
            return
        group, resource, part = what
        of_group, of_name = f".{group}" if group else "", f' "{name}"' if name else ""
        raise refusal(403, f'{resource}{of_group}{of_name} is forbidden: User "system:serviceaccount:{account[0]}:{account[1]}" cannot {verb}'
                      f' resource "{with_part(resource, part)}" in API group "{group}" in the namespace "{space}"', "Forbidden")

    def may(self, account, verb, what, name, space):
        """As the Roles of the namespace say that are bound to the account."""
        if account is ADMIN:
            return True
        there, (group, resource, part) = self.spaces.get(space), what
        for binding in there.of("RoleBinding") if there else ():
            if not any(one["kind"] == "ServiceAccount" and (one.get("namespace", space), one["name"]) == account
                       for one in binding["subjects"]):
                continue
            for rule in there.there("Role", binding["roleRef"]["name"])["rules"]:
                if group in rule["apiGroups"] and with_part(resource, part) in rule["resources"] and verb in rule["verbs"] and (
                        "resourceNames" not in rule or name in rule["resourceNames"]):
                    return True
        return False

    def review(self, account, asked):
        of = asked["spec"]["resourceAttributes"]
        what = of.get("group", ""), of["resource"], of.get("subresource")
        return asked | {"status": {"allowed": self.may(account, of["verb"], what, of.get("name"), of["namespace"])}}


def with_part(resource, part):
    """As Roles name subresources."""
    return f"{resource}/{part}" if part else resource


def make_server(api, listener, context):
    class handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60
        disable_nagle_algorithm = True  # as in real servers

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
            with api.lock:  # others may change it meanwhile
                text = (told if isinstance(told, str) else json.dumps(told)).encode()
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
                line = event.encode() + b"\n"
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PATCH = do_DELETE = answer

        def log_message(self, *_):
            pass

    class server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

        def get_request(self):
            connection, address = self.socket.accept()
            made = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            api.connections.append(made)
            return made, address

    made = server(listener.getsockname(), handler, bind_and_activate=False)
    made.socket.close()
    made.socket = listener
    return made
