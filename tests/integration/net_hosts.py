"""Hosts for tests: network namespaces on one switch, each with a folder of its own."""

import concurrent.futures
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import threading

import small_data
from dlrun_job import option, running_job

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", *(f"host{number}" for number in range(8, 255)))
NET = "10.78.0"
CLONE_NEWNET = 0x40000000
# Before the words of a command, which outlives what ends these: as behind ssh, when a line is cut.
OUTLIVED = ["sh", "-c", 'exec 3<&0; "$@" <&3 3<&- & wait $!', "sh"]


def state_of(status, host):
    """What `status` says of a host; None of one that it does not name."""
    return {one["name"]: one["state"] for one in (status or {}).get("hosts", [])}.get(host)


class no_namespaces(Exception):
    """None can be made here, and why."""


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise no_namespaces(f"ip {' '.join(words)}: {done.stderr.strip()}")


class net_hosts:
    """`count` hosts, the first of which runs the root; gone at the end, with all that runs in them. Each has its own of
    `own_folders`, such as /tmp: no file that the hosts share may lie in one."""

    def __init__(self, folder, count=3, own_folders=()):
        self.names, self.folder, self.own_folders = NAMES[:count], folder / "hosts", own_folders
        self.prefix = f"dlrun{os.getpid()}-"
        self.switch = f"{self.prefix}switch"

    def __enter__(self):
        try:
            self.make()
        except (no_namespaces, OSError):
            self.__exit__()
            raise
        return self

    def make(self):
        if not shutil.which("ip") or os.geteuid() != 0:
            raise no_namespaces("network namespaces take root and iproute2")
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "lan", "type", "bridge")
        ip("-n", self.switch, "link", "set", "lan", "up")
        for number, name in enumerate(self.names, 1):
            inside = self.namespace(name)
            ip("netns", "add", inside)
            ip("-n", inside, "link", "add", "lan", "type", "veth", "peer", "name", name, "netns", self.switch)
            ip("-n", self.switch, "link", "set", name, "master", "lan", "up")
            ip("-n", inside, "addr", "add", f"{self.address(name)}/24", "dev", "lan")
            for link in ("lan", "lo"):
                ip("-n", inside, "link", "set", link, "up")
            self.folder_of(name).mkdir(parents=True)
            for path in self.own_folders:
                self.own(name, path).mkdir(parents=True)

    def __exit__(self, *_):
        self.kill_all(*self.names)
        for inside in (*map(self.namespace, self.names), self.switch):
            subprocess.run(["ip", "netns", "del", inside], capture_output=True)

    def namespace(self, name):
        return f"{self.prefix}{name}"

    def address(self, name):
        return f"{NET}.{self.names.index(name) + 1}"

    def folder_of(self, name):
        return self.folder / name

    def run_folders(self, run_dir):
        """Of the job with that run folder, on each host."""
        return [run_dir, *(self.folder_of(name) / "run" for name in self.names[1:])]

    def forget_runs(self):
        """For another one, where none runs."""
        for folder in self.run_folders(None)[1:]:
            shutil.rmtree(folder, ignore_errors=True)

    def within(self, name=NAMES[0]):
        """The words that run a command there."""
        words = ["ip", "netns", "exec", self.namespace(name)]  # in a mount namespace of its own
        if not self.own_folders:
            return words
        mounts = " && ".join(f'mount --bind "$0{path}" {path}' for path in self.own_folders)
        return [*words, "sh", "-c", f'{mounts} && exec "$@"', str(self.own(name))]

    def own(self, name, path="/"):
        """Where a host's own of such a folder lies."""
        return self.folder / "own" / name / path.lstrip("/")

    def left_in_own_folders(self):
        return [str(file) for file in (self.folder / "own").rglob("*") if not file.is_dir()]

    def write_file(self, path, settings=None, count=None, **options):
        """A list of the first `count` hosts, or of all. @param settings further keys of the list; options: of each host, {name: {key: value}}"""
        hosts = []
        for name in self.names[:count]:
            folder = {} if name == self.names[0] else {"folder": str(self.folder_of(name) / "run")}
            hosts.append({"name": name, "address": self.address(name), "cpus": 2, **folder, **options.get(name, {})})
        path.write_text(json.dumps({"start": self.within("{host}"), "hosts": hosts, **(settings or {})}))
        return path

    def start(self, bench, spec, listed, overrides=(), kind=running_job):
        """`dlrun train` on the first host. @param bench where the run folder is, listed: the list of hosts, kind: how it is started"""
        run_dir = bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), spec)
        arguments = ["train", str(file), "--run-dir", str(run_dir), "--hosts", str(listed), *option("--set", overrides)]
        job = kind(bench.program, run_dir, arguments, run_dir.with_suffix(".out"), self.within())
        job.folders_elsewhere = self.run_folders(run_dir)[1:]
        return job

    def call_within(self, name, call):
        """@returns what `call()` gives on that host: on a thread, which may be elsewhere than its process"""
        made = concurrent.futures.Future()

        def enter_and_call():
            try:
                with open(f"/run/netns/{self.namespace(name)}", "rb") as inside:
                    if ctypes.CDLL(None, use_errno=True).setns(inside.fileno(), CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
                made.set_result(call())
            except Exception as why:  # for whoever waits
                made.set_exception(why)

        threading.Thread(target=enter_and_call).start()
        return made.result()

    def listener(self, name, port):
        """A socket of this process that listens on that host."""
        return self.call_within(name, lambda: socket.create_server((self.address(name), port)))

    def processes(self, name):
        """All that run there."""
        listed = subprocess.run(["ip", "netns", "pids", self.namespace(name)], capture_output=True, text=True)
        return [int(pid) for pid in listed.stdout.split()]

    def workers_on(self, names, status):
        """Processes of the workers that run there, by the status of their job."""
        there = {pid for name in names for pid in self.processes(name)}
        return [role["pid"] for role in status["roles"] if role["role"] == "worker" and role["pid"] in there]

    def agents_of(self, name):
        """Of each the parent of the others: beside the one that is wanted there may be one that was cut off, for a while."""
        for pid in self.processes(name):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as words:
                if words.read().split(b"\0")[1:2] == [b"agent"]:
                    yield pid

    def agent_of(self, name):
        return next(self.agents_of(name), None)

    def kill_agents(self, name):
        for pid in self.agents_of(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_all(self, *names, spared=()):
        """All that runs on these hosts but the processes `spared`, as at a loss of power: nobody there notices another's end."""
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in [pid for name in names for pid in self.processes(name)]:
                if pid not in spared:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal_number)

    def set_link(self, name, state):
        """Up or down, at its end."""
        ip("-n", self.switch, "link", "set", name, state)

    def limit(self, name, rate, burst="64kb"):
        """It sends so much at most, as 4mbit, from now on. @param burst what it may send at once after a rest"""
        words = ["qdisc", "replace", "dev", "lan", "root", "tbf", "rate", rate, "burst", str(burst), "latency", "50ms"]
        done = subprocess.run([*self.within(name), "tc", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise no_namespaces(f"tc {' '.join(words)}: {done.stderr.strip()}")

    def drop(self, name, what):
        """What comes there and matches `what`, a condition of nftables, is lost silently; in place of what was so before."""
        self.filter(name, "add table ip lost", "delete table ip lost",
                    f"table ip lost {{ chain heard {{ type filter hook input priority 0; iif lan {what} drop; }}; }}")

    def part_from_all(self, name):
        """Nothing comes there, and nothing that it says is heard; its own it hears."""
        self.filter(name, "add table ip lost", "delete table ip lost",
                    "table ip lost { chain heard { type filter hook input priority 0; iif lan drop; };"
                    " chain said { type filter hook output priority 0; oif lan drop; }; }")

    def heal(self, name):
        """Nothing is lost there any more."""
        self.filter(name, "add table ip lost", "delete table ip lost")

    def filter(self, name, *commands):
        if not shutil.which("nft"):
            raise no_namespaces("packets are lost by nftables: the program nft is missing")
        subprocess.run([*self.within(name), "nft", "-f", "-"], input="\n".join(commands), text=True, check=True)

    def drop_from(self, name, *others):
        """`name` hears nothing of the others, which hear it."""
        self.drop(name, f"ip saddr {{ {', '.join(map(self.address, others))} }}")

    def lose(self, name, spared=()):
        """The whole host: its link goes first, so that nobody hears of the ends; then all that runs, and its disk."""
        self.set_link(name, "down")
        self.kill_all(name, spared=spared)
        shutil.rmtree(self.folder_of(name), ignore_errors=True)
