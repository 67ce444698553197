"""Base of tests of hosts that come by themselves: `dlrun agent --join`, in network namespaces."""

import contextlib
import json
import subprocess

from dlrun_job import PATIENCE_S, has_workers, status_of, wait_until
from hosts_case import GONE_WITHIN_S, on_several_hosts
from net_hosts import state_of

PORT = 7700
ENDLESS, STEP = 100000, 10
COMPLETED, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130
LIFETIME_S, WORKERS, GRACE_S = 5, 3, 60


def all_there(status):
    return has_workers(status, WORKERS)


class joining_agent:
    """`dlrun agent --join` on a host, with all that it starts."""

    def __init__(self, case, name, token="", token_file="-", called=None, folder=None, options=()):
        """@param token: what it reads on its standard input, called: its name in the job, options: in place of the token's"""
        hosts = case.hosts
        self.log = case.bench.folder / f"agent-{name}-{len(case.agents)}.log"
        words = [*hosts.within(name), case.program, "agent", "--join", case.join_at, *(options or ("--token-file", token_file)),
                 "--name", called or name, "--folder", str(folder or hosts.folder_of(name)), "--cpus", "2"]
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                                            start_new_session=True)
        with contextlib.suppress(BrokenPipeError), self.process.stdin as tell:
            tell.write(token.encode())

    def said(self):
        return self.log.read_text(errors="replace")

    def wait(self):
        return self.process.wait(timeout=PATIENCE_S)


class lets_hosts_join(on_several_hosts):
    """The list has the host of the root alone."""

    hosts_min = 1

    def setUp(self):
        super().setUp()
        self.agents = []
        self.addCleanup(self.end_agents)
        self.join_at = f"{self.hosts.address(self.hosts.names[0])}:{PORT}"
        self.write_list(hosts_min=self.hosts_min)

    def write_list(self, settings=None, **join):
        self.list = self.hosts.write_file(self.bench.folder / "hosts.yaml", {"join": {"listen": self.join_at, **join}, **(settings or {})},
                                          count=1)

    def endless(self):
        """A job that is ended when nobody looks any more."""
        return self.start(self.unhurried(self.small_job(epochs=ENDLESS)))

    def end_agents(self):
        for one in self.agents:
            if one.process.poll() is None:
                one.process.kill()
            one.process.wait()

    def token(self, job, *options):
        """One of `dlrun token`, once the root answers."""
        def made():
            code, token, complaint = job.ask("token", *options)
            if code == COMPLETED:
                return token
            if job.root.poll() is not None:
                raise AssertionError(f"{complaint}\n{job.output()}")
            return None

        return wait_until(made, "a token is made")

    def agent(self, name, token="", **how):
        self.agents.append(joining_agent(self, name, token, **how))
        return self.agents[-1]

    def enrol(self, job, name, token=None):
        """A host that has joined. @returns its agent"""
        one = self.agent(name, token or self.token(job))

        def is_there():
            if one.process.poll() is not None:
                raise AssertionError(one.said())
            return self.state_of(job, name) == "there"

        wait_until(is_there, f"{name} is there")
        return one

    def state_of(self, job, name):
        return state_of(json.loads(status_of(job.run_dir) or "{}"), name)

    def expect_refused(self, one, *words):
        self.assertEqual(one.wait(), BAD_USAGE, one.said())
        for word in words:
            self.assertIn(word, one.said().splitlines()[-1])

    def expect_left_nothing(self, name):
        """Nothing runs there, and no folder of a run is left."""
        wait_until(lambda: not self.hosts.processes(name), f"nothing runs on {name}", GONE_WITHIN_S)
        self.assertEqual(list(self.hosts.folder_of(name).rglob("*")), [])
