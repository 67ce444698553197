"""Jobs with three stores of each PS shard: two hosts are lost at once with their disks, and nothing that was committed is
computed again."""

from bench_case import main
from copies_case import STEP, copies, newest
from dlrun_job import wait_until
from host_faults import KEEPERS_PER_COPY
from hosts_case import PS_SHARDS

COPIES = 2
PATIENCE_S = 60  # on however busy a machine


class three_stores(copies):
    """On four hosts, of which alpha is the root's. PS shard 1 is on another one."""

    host_count = 4

    def copied_job(self):
        spec = super().copied_job()
        spec["durability"]["replicas"] = 1 + COPIES
        return spec

    def undisturbed(self, spec):
        """On one host, where nothing has copies."""
        return super().undisturbed(spec | {"durability": {"log": self.log}})

    def keepers(self, status):
        return [role for role in status["roles"] if role["role"] == "keeper"]

    def wait_until_all_whole(self, job):
        """Each on a host of its own: a PS shard may just have come to the host of a copy, which is to begin elsewhere."""
        def are_whole(status):
            keepers = self.keepers(status)
            is_whole = len(keepers) == COPIES * PS_SHARDS and all(one["state"] == "whole" for one in keepers)
            return is_whole and all(hosts == 1 + COPIES for hosts in self.hosts_of_stores(job))

        job.wait_for(are_whole, "all copies are whole, and each store is on a host of its own", PATIENCE_S)

    def hosts_of_stores(self, job):
        """How many hosts the stores of each PS shard are on."""
        places = self.places(job)
        return [len({*self.hosts_of_copies(places, shard), places["ps_shard", shard]}) for shard in range(PS_SHARDS)]

    def hosts_of_copies(self, places, shard):
        return [places["keeper", copy * KEEPERS_PER_COPY + shard] for copy in range(COPIES)]

    def committed(self, job):
        """What is in all copies, and so was committed before, when the job is looked at."""
        return min(newest(role) for role in self.keepers(job.status()))

    def begin(self):
        spec = self.copied_job()
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_for_step(STEP)
        self.wait_until_all_whole(job)
        return job, spec

    def lose_shard_and_copy(self, job):
        """The host of PS shard 1, and at the same moment one with a copy of it: neither is the root's.
        @returns both, and what was committed before"""
        places = self.places(job)
        shard_is_on = places["ps_shard", 1]
        self.assertNotEqual(shard_is_on, "alpha")
        copy_is_on = next(host for host in self.hosts_of_copies(places, 1) if host != "alpha")
        committed = self.committed(job)
        for name in (shard_is_on, copy_is_on):
            self.hosts.set_link(name, "down")
        for name in (shard_is_on, copy_is_on):
            self.hosts.lose(name)
        wait_until(lambda: self.places(job)["ps_shard", 1] not in (shard_is_on, copy_is_on), "PS shard 1 is on its last copy",
                   PATIENCE_S)
        return [shard_is_on, copy_is_on], committed


class two_hosts_at_once(three_stores):
    def test_with_a_ps_shard_and_a_copy_cost_no_committed_step_again_and_again(self):
        job, spec = self.begin()
        [line] = [line for line in job.ask("status")[1].splitlines() if "may be lost" in line]
        self.assertIn("any 2 of these hosts may be lost at once now without losing a committed step: beta, delta, gamma", line)
        lost, committed = self.lose_shard_and_copy(job)
        wait_until(lambda: len(job.events("copy-waits")) >= PS_SHARDS, "copies wait for hosts", PATIENCE_S)
        for name in lost:
            self.hosts.set_link(name, "up")
        self.wait_until_all_whole(job)
        _, later = self.lose_shard_and_copy(job)
        self.expect_nothing_lost(job, spec, [committed, later])
        self.assertEqual(len(job.events("host-lost")), 4)


class two_hosts_at_once_of_a_job_without_a_log(two_hosts_at_once):
    """What is committed are snapshots."""

    log = "snapshots"


class a_copy_of_two(three_stores):
    def test_that_is_lost_leaves_the_other_and_is_filled_again(self):
        job, spec = self.begin()
        job.kill("keeper", KEEPERS_PER_COPY + 1)
        wait_until(lambda: job.events("copy-lost"), "the copy is lost")
        [lost] = job.events("copy-lost")
        self.assertIn("ps_shard 1 goes on with one copy on another host", lost["text"])
        self.wait_until_all_whole(job)
        report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])
        self.assertEqual(report["durability"]["replicas"], 1 + COPIES)

    def test_moves_with_its_ps_shard_when_a_host_is_drained(self):
        job, spec = self.begin()
        drained = self.places(job)["ps_shard", 1]
        self.assertEqual(job.ask("drain", drained, "--wait")[0], 0)
        self.assertNotIn(drained, self.places(job).values())
        self.wait_until_all_whole(job)
        code, _, said = job.ask("drain", next(name for name in self.hosts.names[1:] if name != drained))
        self.assertEqual(code, 2)
        self.assertIn("with durability.replicas: 3 it needs 3", said)
        report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])


if __name__ == "__main__":
    main()
