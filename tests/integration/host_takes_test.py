"""Hosts that take PS shards alone, and hosts for workers: each has what it is for, whatever is lost. In network namespaces."""

from bench_case import main
from dlrun_job import all_run, wait_until
from hosts_case import explained, on_several_hosts
from join_case import lets_hosts_join


def hosts_of(job, *kinds):
    """Those on which roles of these kinds are."""
    return {one["host"] for (kind, _), one in explained(job).items() if kind in kinds}


class a_list(on_several_hosts):
    host_count = 4

    def test_says_where_workers_are_and_where_ps_shards(self):
        self.hosts.write_file(self.list, alpha={"takes": "ps_shards"}, beta={"takes": "ps_shards"}, gamma={"takes": "workers"},
                              delta={"takes": "workers"})
        spec = self.small_job(device="auto")  # which the root settles, though no worker is there
        with self.start(spec) as job:
            with job.held_from_step(20, all_run) as status:
                self.assertEqual(hosts_of(job, "ps_shard", "keeper"), {"alpha", "beta"})
                self.assertEqual(hosts_of(job, "worker"), {"gamma", "delta"})
                self.assertTrue(self.hosts.workers_on(["gamma"], status))
                self.hosts.lose("beta")
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["steps_redone"], 0)
        told = {event["host"]: event["text"] for event in job.events("host-joined")}
        self.assertIn("it takes PS shards", told["beta"])
        self.assertIn("it takes workers", told["gamma"])

    def test_without_a_host_for_workers_is_refused(self):
        self.hosts.write_file(self.list, **{name: {"takes": "ps_shards"} for name in self.hosts.names})
        with self.start(self.small_job()) as job:
            self.assertEqual(job.root.wait(), 2)
            self.assertIn("hosts[0].takes: no host takes workers, and none may join", job.output())


class that_join(lets_hosts_join):
    hosts_min = 2

    def write_list(self, settings=None, **join):
        self.list = self.hosts.write_file(self.bench.folder / "hosts.yaml",
                                          {"join": {"listen": self.join_at, "hosts_min_staying": 2, **join}, **(settings or {})},
                                          count=1, alpha={"takes": "ps_shards"})

    def join(self, job, name, takes):
        return self.agent(name, self.token(job), options=("--token-file", "-", "--takes", takes))

    def test_and_workers_wait_for_one_that_takes_them(self):
        spec = self.unhurried(self.small_job())
        with self.start(spec) as job:
            self.join(job, "gamma", "workers")
            job.wait_for_output("1 of 2 hosts are there on which PS shards stay, beside 1 where they do not; hosts join at " + self.join_at)
            self.join(job, "beta", "ps_shards")
            with job.held_from_step(1, all_run):
                self.assertEqual(hosts_of(job, "ps_shard", "keeper"), {"alpha", "beta"})
                self.assertEqual(hosts_of(job, "worker"), {"gamma"})
                self.hosts.lose("gamma")
            wait_until(lambda: any("waits for a host that takes workers" in one["text"] for one in job.events("role-waits")),
                       "workers wait")
            self.hosts.set_link("gamma", "up")
            self.join(job, "gamma", "workers")
            self.expect_same_bits(job, spec)


if __name__ == "__main__":
    main()
