"""Asks an API server of Kubernetes, a real one or one that is played."""

import contextlib
import http.client
import json
import ssl
import threading
import time
import urllib.parse

PATIENCE_S = 60  # controllers of a real cluster take their time
POLL_S = 0.05
PLURALS = {"Pod": "/api/v1", "ConfigMap": "/api/v1", "Event": "/api/v1", "ServiceAccount": "/api/v1", "ResourceQuota": "/api/v1",
           "LimitRange": "/api/v1", "Namespace": "/api/v1", "Node": "/api/v1", "Job": "/apis/batch/v1",
           "PodDisruptionBudget": "/apis/policy/v1", "Role": "/apis/rbac.authorization.k8s.io/v1",
           "RoleBinding": "/apis/rbac.authorization.k8s.io/v1"}
UNSPACED = ("Namespace", "Node")


class wrong(Exception):
    """A server does something else than is written of servers."""


def expect(condition, what):
    if not condition:
        raise wrong(what)


def wait_for(condition, what, patience_s=None):
    """Polls until `condition()` is true. @returns its value"""
    patience_s = PATIENCE_S if patience_s is None else patience_s
    until = time.monotonic() + patience_s
    while not (value := condition()):
        expect(time.monotonic() < until, f"not within {patience_s} s: {what}")
        time.sleep(POLL_S)
    return value


class answer:
    def __init__(self, code, told, headers):
        self.code, self.told, self.headers = code, told, headers

    def expect(self, code, reason=None, *words):
        """@returns what was told"""
        expect(self.code == code, f"the answer is {self.code}, not {code}: {self.told}")
        expect(reason in (None, self.told.get("reason")), f"the reason is {self.told.get('reason')}, not {reason}: {self.told}")
        for word in words:
            expect(word in self.told.get("message", ""), f"'{word}' is not said: {self.told}")
        return self.told


class asker:
    """@param server as https://HOST:PORT; token: of a bearer, or None; ca: file of who signs the server, or None"""

    def __init__(self, server, token=None, ca=None):
        self.server, self.token, self.ca = server, token, ca
        self.context = ssl.create_default_context(cafile=ca) if server.startswith("https") else None
        self.name_space = "default"

    def with_token(self, token):
        made = asker(self.server, token, self.ca)
        made.name_space = self.name_space
        return made

    def path(self, kind, name=None, query=None, space=None):
        made = PLURALS[kind] + ("" if kind in UNSPACED else f"/namespaces/{space or self.name_space}") + f"/{kind.lower()}s"
        return made + (f"/{name}" if name else "") + (f"?{urllib.parse.urlencode(query)}" if query else "")

    def connect(self, timeout_s):
        at = urllib.parse.urlsplit(self.server)
        if at.scheme == "https":
            return http.client.HTTPSConnection(at.hostname, at.port or 443, timeout=timeout_s, context=self.context)
        return http.client.HTTPConnection(at.hostname, at.port or 80, timeout=timeout_s)

    def send(self, connection, method, path, body, content_type):
        headers = {"Accept": "application/json", "Content-Type": content_type}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse()

    def ask(self, method, path, body=None, content_type="application/json"):
        with contextlib.closing(self.connect(PATIENCE_S)) as connection:
            got = self.send(connection, method, path, body, content_type)
            text = got.read()
            try:
                told = json.loads(text)
            except ValueError:
                told = {"message": text.decode(errors="replace")}
            return answer(got.status, told, got.headers)

    # ---- verbs

    def create(self, kind, name, body=(), metadata=(), space=None):
        group = PLURALS[kind].removeprefix("/apis/").removeprefix("/api/")
        whole = {"apiVersion": group, "kind": kind, "metadata": {"name": name, **dict(metadata)}, **dict(body)}
        return self.ask("POST", self.path(kind, space=space), whole)

    def get(self, kind, name):
        return self.ask("GET", self.path(kind, name))

    def list(self, kind, **query):
        return self.ask("GET", self.path(kind, query=query))

    def patch(self, kind, name, body, content_type="application/merge-patch+json"):
        return self.ask("PATCH", self.path(kind, name), body, content_type)

    def patch_status(self, kind, name, status, content_type="application/merge-patch+json"):
        return self.ask("PATCH", self.path(kind, name) + "/status", {"status": status}, content_type)

    def evict(self, name, called=None, query="", **options):
        """@param called in the Eviction, if by another name; options: of the deletion"""
        whole = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": called or name}} | ({"deleteOptions": options} if options else {})
        return self.ask("POST", self.path("Pod", name) + f"/eviction{query}", whole)

    def delete(self, kind, name, **options):
        return self.ask("DELETE", self.path(kind, name), {"apiVersion": "v1", "kind": "DeleteOptions", **options})

    def is_gone(self, kind, name):
        return self.get(kind, name).code == 404

    def watch(self, kind, version, lasts_s, **query):
        """@returns the events of a whole watch"""
        with self.watching(kind, version, lasts_s, **query) as seen:
            seen.thread.join()
            return seen.events

    @contextlib.contextmanager
    def watching(self, kind, version, lasts_s, **query):
        """Meanwhile its events come."""
        path = self.path(kind, query={"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": lasts_s, "resourceVersion": version, **query})
        seen = watched(self, path, lasts_s + PATIENCE_S)
        try:
            yield seen
        finally:
            seen.end()


class watched:
    """One stream, on its own thread."""

    def __init__(self, of, path, patience_s):
        self.events, self.code, self.problem = [], None, None
        self.connection = of.connect(patience_s)
        self.thread = threading.Thread(target=self.follow, args=(of, path), daemon=True)
        self.thread.start()

    def follow(self, of, path):
        try:
            got = of.send(self.connection, "GET", path, None, "application/json")
            self.code = got.status
            if got.status != 200:
                self.events.append({"type": "ERROR", "object": json.loads(got.read())})
                return
            for line in got:
                self.events.append(json.loads(line))
        except (OSError, ValueError, http.client.HTTPException, AttributeError) as why:  # the last: it was closed meanwhile
            self.problem = why

    def end(self):
        with contextlib.suppress(OSError, AttributeError):
            self.connection.sock.shutdown(2)
        self.connection.close()
        self.thread.join()

    def kinds(self, *names):
        """(type, name) of events of these objects so far, without bookmarks."""
        told = [(one["type"], one["object"]["metadata"].get("name")) for one in self.events if one["type"] not in ("BOOKMARK", "ERROR")]
        return [one for one in told if not names or one[1] in names]

    def of(self, name):
        """The events of that object so far."""
        return [one for one in self.events if one["object"].get("metadata", {}).get("name") == name]
