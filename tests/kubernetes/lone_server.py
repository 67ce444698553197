"""The API server that is played, alone: with nodes behind it, and faults that are ordered by POST /faults (fake_api_server)."""

import json
import pathlib
import secrets
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from api_objects import refusal
from etcd_members import own_authority
from fake_api import ADMIN, fake_api, players
from played_nodes import played_nodes


class nodes_as_players(players):
    nodes = None

    def on_end(self, space, going):
        return self.nodes.on_end(going)


class server_of_faults(fake_api):
    """With its own nodes behind it, and faults that can be ordered."""

    def __init__(self, listener, certificate, key):
        super().__init__(listener, certificate, key, {}, nodes_as_players())
        self.played_by.nodes = played_nodes(self)
        self.space.create("ServiceAccount", {"kind": "ServiceAccount", "metadata": {"name": "default"}})

    def __enter__(self):
        self.played_by.nodes.__enter__()
        return super().__enter__()

    def __exit__(self, *_):
        self.played_by.nodes.__exit__()
        super().__exit__()

    def answer(self, method, path, headers, body):
        if path != "/faults":
            return super().answer(method, path, headers, body)
        if self.tokens.get(headers.get("Authorization", "").removeprefix("Bearer "), "") is not ADMIN:
            raise refusal(401, "Unauthorized", "Unauthorized")
        self.spoil(json.loads(body))
        return 201, {}

    def spoil(self, how):
        if how["fault"] == "refuse":
            refused = refusal(how["code"], how.get("message", ""), how.get("reason", ""), how.get("headers", {}))
            self.refuse(how["request"], refused, how.get("times", 1))
            return
        orders = {"compact": self.history.compact, "cut": self.history.cut, "silence": lambda: self.history.silence(True),
                  "speech": lambda: self.history.silence(False), "save": self.save, "restore": self.restore}
        if how["fault"] not in orders:
            raise refusal(400, f"no such fault: {how['fault']}", "BadRequest")
        orders[how["fault"]]()


def make_server(folder, port=0, expires_in_stream=False):
    """Begins to listen on loopback. @returns it, and where it is; ca.crt and token are in the folder"""
    authority = own_authority(folder / "authority")
    listener = socket.create_server(("127.0.0.1", port))
    made = server_of_faults(listener, *authority.issue("api"))
    made.history.expires_in_stream = expires_in_stream
    token = secrets.token_hex(16)
    made.tokens[token] = ADMIN
    (folder / "ca.crt").write_bytes(authority.certificate.read_bytes())
    (folder / "token").write_text(token)
    return made, f"https://127.0.0.1:{listener.getsockname()[1]}"
