"""A real etcd of a few members, of Debian's package etcd-server, that ends with the test."""

import base64
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from dlrun_job import expect, wait_until

CLIENT_PORT, PEER_PORT = 2379, 2380
ANSWER_S = 10
NEXT_AFTER_S = 0.5  # where one of several members is looked for: another one may stand still
SOON_S = 1.5  # well within the patience of those who write there (persistence/etcd_client.hpp)
PR_SET_PDEATHSIG = 1
# Run where the member is, maybe in another network namespace: asks ADDRESS with TEXT, for so many
# SECONDS; where there is TLS, by an AUTHORITY, showing a CERTIFICATE with its KEY.
ASK = """import ssl, sys, urllib.request as http
handlers = [http.ProxyHandler({})]
if sys.argv[4:]:
    context = ssl.create_default_context(cafile=sys.argv[4])
    context.load_cert_chain(*sys.argv[5:])
    handlers.append(http.HTTPSHandler(context=context))
opener = http.build_opener(*handlers)
print(opener.open(sys.argv[1], sys.argv[2].encode(), float(sys.argv[3])).read().decode())
"""


def own_addresses(count):
    """Addresses of loopback that no other process has: they follow from this one's number."""
    pid = os.getpid()
    return [f"127.{64 + (pid >> 16 & 63)}.{pid >> 8 & 255}.{pid & 255}"] * count


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class no_etcd(Exception):
    """None can be started here, and why."""


class own_authority:
    """An authority of its own, with what it issues: files of PEM in a folder."""

    def __init__(self, folder):
        folder.mkdir(parents=True)
        self.folder, self.certificate, self.key = folder, folder / "authority.pem", folder / "authority.key"
        self.make(self.certificate, self.key, "authority", "basicConstraints=critical,CA:TRUE")

    def issue(self, name, address="127.0.0.1"):
        """@returns the files of a certificate, for both ends of a connection, and of its key"""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        self.make(certificate, key, name, f"subjectAltName=IP:{address}", "extendedKeyUsage=serverAuth,clientAuth",
                  signer=["-CA", str(self.certificate), "-CAkey", str(self.key)])
        return certificate, key

    def make(self, certificate, key, name, *extensions, signer=()):
        added = [word for one in extensions for word in ("-addext", one)]
        subprocess.run(["openssl", "req", "-x509", "-config", "/dev/null", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "1", "-subj", f"/CN={name}", "-out", str(certificate), "-keyout", str(key), *added, *signer],
                       check=True, capture_output=True)


class etcd_members:
    """Begins with all of them up. `within[i]`: words of a command that runs another where member i is. With an authority
    they talk TLS to clients, and to those alone that show a certificate of it."""

    def __init__(self, folder, addresses, within=None, authority=None):
        self.folder, self.addresses, self.authority = folder, addresses, authority
        self.within = within or [[]] * len(addresses)
        self.running = [None] * len(addresses)
        self.leaderless_s = []  # how long it had no leader, each time that it lost one

    def __enter__(self):
        if not shutil.which("etcd"):
            raise no_etcd("the program etcd is missing: it is in Debian's package etcd-server")
        self.folder.mkdir(parents=True)
        try:
            for member in range(len(self.addresses)):
                self.start(member)
            self.leader()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for member in range(len(self.addresses)):
            self.kill(member)

    def port(self, base, member):
        return base + 10 * member

    def endpoint(self, member):
        return f"{'https' if self.authority else 'http'}://{self.addresses[member]}:{self.port(CLIENT_PORT, member)}"

    def peer(self, member):
        return f"http://{self.addresses[member]}:{self.port(PEER_PORT, member)}"

    def endpoints(self):
        return [self.endpoint(member) for member in range(len(self.addresses))]

    def journal(self, **options):
        """The value of cluster.journal."""
        return {"etcd": {"endpoints": self.endpoints(), **options}}

    def start(self, member):
        everybody = ",".join(f"m{one}={self.peer(one)}" for one in range(len(self.addresses)))
        words = ["etcd", f"--name=m{member}", f"--data-dir={self.folder / f'm{member}'}",
                 f"--listen-client-urls={self.endpoint(member)}", f"--advertise-client-urls={self.endpoint(member)}",
                 f"--listen-peer-urls={self.peer(member)}", f"--initial-advertise-peer-urls={self.peer(member)}",
                 f"--initial-cluster={everybody}", f"--initial-cluster-token={self.folder.parent.name}"]
        if self.authority:
            certificate, key = self.authority.issue(f"m{member}", self.addresses[member])
            words += [f"--cert-file={certificate}", f"--key-file={key}", "--client-cert-auth",
                      f"--trusted-ca-file={self.authority.certificate}"]
        with open(self.folder / f"m{member}.log", "ab") as log:
            self.running[member] = subprocess.Popen([*self.within[member], *words], stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=subprocess.STDOUT, preexec_fn=end_with_parent)

    def kill(self, member):
        if self.running[member]:
            self.running[member].kill()
            self.running[member].wait()
        self.running[member] = None

    def pids(self):
        return {process.pid for process in self.running if process}

    def send_signal(self, member, which):
        self.running[member].send_signal(which)

    def ask(self, member, path, question, patience_s=ANSWER_S):
        """What the gateway of a member answers, or None."""
        shown = [str(self.authority.certificate), *map(str, self.authority.issue("asker"))] if self.authority else []
        words = [*self.within[member], sys.executable, "-c", ASK, self.endpoint(member) + path, json.dumps(question), str(patience_s), *shown]
        done = subprocess.run(words, capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def leader(self):
        """Which member leads; waits for one."""
        def find():
            for member, process in enumerate(self.running):
                status = process and self.ask(member, "/v3/maintenance/status", {}, NEXT_AFTER_S)
                if status and status.get("leader") == status["header"]["member_id"]:
                    return [member]
            return None

        return wait_until(find, "etcd has a leader", patience_s=60)[0]

    def ask_leader(self, path, question):
        """What it answers; asked again where it led no more, or where a busy machine was slow: for what may be done twice."""
        return wait_until(lambda: self.ask(self.leader(), path, question), "etcd answers")

    def lose_leader(self, by_kill):
        """Kills or stops the leader until another leads, and lets it come back."""
        lost, begin = self.leader(), time.monotonic()
        if by_kill:
            self.kill(lost)
        else:
            self.send_signal(lost, signal.SIGSTOP)
        wait_until(lambda: self.leader() != lost, "another leads")
        self.leaderless_s.append(time.monotonic() - begin)
        if by_kill:
            self.start(lost)
        else:
            self.send_signal(lost, signal.SIGCONT)

    def expect_no_restart(self, report):
        """Of a job that has its journal there, and of which nothing else happened. Where a busy machine left the etcd without a
        leader for long, the coordinator may have ended, which cannot write then; nobody else."""
        spared = {"coordinator"} if max(self.leaderless_s) > SOON_S else set()
        expect({one["role"] for one in report["recoveries"]} <= spared,
               f"without a leader for {self.leaderless_s} s: {report['recoveries']}")

    def keys(self, prefix=""):
        """All that begin with `prefix`."""
        answer = self.ask_leader("/v3/kv/range", {**self.range_of(prefix), "keys_only": True})
        return [base64.b64decode(one["key"]).decode() for one in answer.get("kvs", [])]

    def remove(self, prefix):
        """All that begin with `prefix`."""
        self.ask_leader("/v3/kv/deleterange", self.range_of(prefix))

    def range_of(self, prefix):
        begin = base64.b64encode(prefix.encode() or b"\0").decode()
        end = base64.b64encode(prefix[:-1].encode() + bytes([ord(prefix[-1]) + 1]) if prefix else b"\0").decode()
        return {"key": begin, "range_end": end}
