"""A root's host without cores for the job (`cpus: 0`): roles are elsewhere, and go on while there is no root."""

import pathlib

from bench_case import main
from dlrun_job import all_run, wait_until
from hosts_case import on_several_hosts
from log_watch import log_watch

STEP = 20
GRACE_S = 60
STEPS_WITHOUT = 30  # that are made while there is no root: far more than what is on its way when it ends
ROOT, BETA, GAMMA = "alpha", "beta", "gamma"


class spared_root(on_several_hosts):
    def setUp(self):
        super().setUp()
        self.hosts.write_file(self.list, alpha={"cpus": 0})

    def hosts_of(self, job):
        """Of each role but the coordinator, where it was placed last."""
        return {(one["role"], one["index"]): one["host"] for one in job.events("role-placed") if one["role"] != "coordinator"}

    def test_takes_no_role_and_none_stops_when_it_is_killed(self):
        spec = self.small_job(orphan_grace_s=GRACE_S)
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run):
                placed = self.hosts_of(job)
                self.assertEqual({role for (role, _), host in placed.items() if host == ROOT}, set())
                self.assertEqual({role for role, _ in placed}, {"ps_shard", "keeper", "worker"})
                folder = pathlib.Path(self.hosts.folder_of(placed["ps_shard", 0])) / "run"
                running = {name: set(self.hosts.processes(name)) for name in (BETA, GAMMA)}
                job.root.kill()
                job.root.wait()
            wait_until(lambda: not self.hosts.processes(ROOT), "nothing runs on the root's host")
            with log_watch(folder) as watch:
                wait_until(lambda: len(watch.moments) > STEPS_WITHOUT, "steps are made without a root")
            self.assertEqual({name: set(self.hosts.processes(name)) for name in (BETA, GAMMA)}, running)
            job.resume(options=["--hosts", str(self.list)])
            job.wait_for(all_run, "the root is back, with all roles")
            self.assertEqual({name: set(self.hosts.processes(name)) for name in (BETA, GAMMA)}, running)
            self.assertEqual(self.expect_same_bits(job, spec)["steps_redone"], 0)

    def test_takes_all_when_no_other_host_is_left(self):
        self.hosts.write_file(self.list, count=2, alpha={"cpus": 0})
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run):
                self.assertEqual({host for (role, _), host in self.hosts_of(job).items() if role != "keeper"}, {BETA})
                self.assertEqual(self.hosts_of(job)["keeper", 0], ROOT)
                self.hosts.kill_all(BETA)
            job.wait_for(lambda now: now["step"] > STEP + 5 and all_run(now), "it trains on the root's host")
            self.assertEqual({host for (role, _), host in self.hosts_of(job).items() if role != "keeper"}, {ROOT})
            self.assertEqual(self.expect_same_bits(job, spec, may_redo=True)["status"], "completed")


if __name__ == "__main__":
    main()
