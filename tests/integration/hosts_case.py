"""Base of tests of jobs on several hosts, each a network namespace with a folder of its own."""

import json

import net_hosts
import paused_runs
import small_data
from bench_case import bench_case
from dlrun_job import wait_until

EPOCHS = 4  # of 63 steps
SLOT_S = 0.02  # a job that something happens to takes its time: with all workers it lasts five seconds and can be held
UNHURRIED_SLOT_S = 0.3  # one that cannot be held for so long: a minute, with one worker five
WORKERS, PS_SHARDS = 4, 2
GONE_WITHIN_S = 30  # an agent that is cut off ends after 10 s, and what it runs up to 3 s later
ORPHAN_GRACE_S = 10  # tests that lose a root for good wait so long for the ends of what it ran


def without_copies(spec):
    """So that it is known where the only store of a PS shard is, and what is lost with it."""
    return spec | {"durability": spec["durability"] | {"replicas": 1}}


def explained(job):
    """(role, index) -> what `dlrun explain` says of it."""
    code, told, complaint = job.ask("explain", "--json")
    if code != 0:
        raise AssertionError(complaint)
    return {(one["role"], one["index"]): one for one in json.loads(told)["roles"]}


class on_several_hosts(bench_case):
    host_count = 3

    def setUp(self):
        super().setUp()
        self.hosts = self.enter_or_skip(net_hosts.net_hosts(self.bench.folder, self.host_count), net_hosts.no_namespaces)
        self.list = self.hosts.write_file(self.bench.folder / "hosts.yaml")
        self.pauses = self.enterContext(paused_runs.pauses(self.bench.folder, SLOT_S))

    def small_job(self, epochs=EPOCHS, **options):
        """It takes its time until `self.pauses.end()`, and has copies, as it does not say otherwise. For a dlrun with the layer of
        pausing_program.cpp."""
        spec = small_data.make_spec("mlp_dropout", self.data, epochs=epochs, workers=WORKERS, ps_shards=PS_SHARDS)
        spec["durability"] = {"log": "every_step"}
        spec["cluster"].update({"orphan_grace_s": ORPHAN_GRACE_S} | options)
        return paused_runs.with_pauses(spec)

    def unhurried(self, spec):
        """The job takes more time: for what takes longer than a job may be held (a role that is stopped for 10 s is killed)."""
        self.pauses.set_all(UNHURRIED_SLOT_S)
        return spec

    def start(self, spec, overrides=(), hosts=None):
        return self.hosts.start(self.bench, spec, hosts or self.list, overrides)

    def expect_same_bits(self, job, spec, may_redo=False):
        self.pauses.end()
        report = job.expect_complete(may_redo=may_redo)
        self.assertEqual(report["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])
        self.expect_nobody_left()
        return report

    def expect_committed_kept(self, report, committed):
        """What all PS shards had on disk when the root was killed, each time, is not done again. Steps that PS shard 0 lacked may
        be: it is with the root, and so are workers that keep gradients of them."""
        self.assertLessEqual(len(report["rewinds"]), len(committed))
        for rewind, kept in zip(report["rewinds"], committed):
            self.assertGreaterEqual(rewind["version"], kept)

    def expect_nobody_left(self):
        for name in self.hosts.names:
            wait_until(lambda one=name: not self.hosts.processes(one), f"nothing runs on {name}", GONE_WITHIN_S)

    def workers_elsewhere(self, status):
        """Processes of workers on hosts that are not the root's."""
        return self.hosts.workers_on(self.hosts.names[1:], status)

    def roles_on(self, name):
        """Processes of roles on a host that is not the root's: all there but its agent."""
        return [pid for pid in self.hosts.processes(name) if pid != self.hosts.agent_of(name)]
