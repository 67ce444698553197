"""Hosts that may go at short notice: PS shards and copies are on others, and their loss redoes no step. In network namespaces."""

from bench_case import main
from dlrun_job import all_run, wait_until
from hosts_case import explained, on_several_hosts
from join_case import lets_hosts_join

NOTICE = "it may go at short notice"


def hosts_of(job, *kinds):
    """Those on which roles of these kinds are."""
    return {one["host"] for (kind, _), one in explained(job).items() if kind in kinds}


class keep_to_workers(on_several_hosts):
    def test_that_the_list_names_and_their_loss_redoes_no_step(self):
        self.hosts.write_file(self.list, beta={"preemptible": True})
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(20, all_run) as status:
                self.assertEqual(hosts_of(job, "ps_shard", "keeper"), {"alpha", "gamma"})
                self.assertTrue(self.hosts.workers_on(["beta"], status), "beta has no worker")
                self.hosts.lose("beta")
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["steps_redone"], 0)
        self.assertEqual([event["host"] for event in job.events("host-joined") if NOTICE in event["text"]], ["beta"])
        self.assertEqual({event["role"] for event in job.events("role-exited")}, {"worker"})


class that_join(lets_hosts_join):
    hosts_min = 3

    def test_say_so_themselves(self):
        spec = self.unhurried(self.small_job())
        with self.start(spec) as job:
            for name, options in (("beta", ("--preemptible",)), ("gamma", ())):
                self.agent(name, self.token(job), options=("--token-file", "-", *options))
            wait_until(lambda: len(job.events("host-joined")) == 2, "both are there")
            with job.held_from_step(1, all_run):
                self.assertEqual(hosts_of(job, "ps_shard", "keeper"), {"alpha", "gamma"})
            self.expect_same_bits(job, spec)
        [told] = [event for event in job.events("host-joined") if NOTICE in event["text"]]
        self.assertEqual(told["host"], "beta")


class that_join_first(lets_hosts_join):
    hosts_min = 2

    def write_list(self, settings=None, **join):
        super().write_list(settings, hosts_min_staying=2, **join)

    def test_are_not_those_on_which_the_job_begins(self):
        """Until copies have moved, both PS shard and copy could go with hosts that go together."""
        spec = self.unhurried(self.small_job())
        with self.start(spec) as job:
            self.agent("beta", self.token(job), options=("--token-file", "-", "--preemptible"))
            job.wait_for_output("1 of 2 hosts are there on which PS shards stay, beside 1 where they do not; hosts join at " + self.join_at)
            self.assertEqual(job.status()["status"], "waiting")
            self.agent("gamma", self.token(job))
            with job.held_from_step(1, all_run):
                self.assertEqual(hosts_of(job, "ps_shard", "keeper"), {"alpha", "gamma"})
            self.expect_same_bits(job, spec)


if __name__ == "__main__":
    main()
