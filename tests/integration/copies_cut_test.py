"""Copies: the hosts of a PS shard and of its copy reach the root, and not each other."""

from bench_case import main
from copies_case import copies
from dlrun_job import wait_until
from hosts_case import PS_SHARDS

STEPS = 10
PATIENCE_S = 60  # on however busy a machine


class the_link_between_a_ps_shard_and_its_copy(copies):
    """PS shard 1 is on beta, its copy on gamma."""

    def cut(self, *deaf):
        """Each of these hosts hears nothing of the other."""
        for name in deaf:
            self.hosts.drop_from(name, "gamma" if name == "beta" else "beta")

    def wait_for_training(self, job):
        """For so many more steps."""
        step = job.status()["step"]
        job.wait_for(lambda status: status["step"] >= step + STEPS, f"{STEPS} steps after step {step}", PATIENCE_S)

    def wait_until_whole_somewhere(self, job):
        """On a host that is not that of its PS shard."""
        def are_whole(status):
            keepers, places = self.roles(status, "keeper"), self.places(job)
            return all(keepers[shard]["state"] == "whole" and places["keeper", shard] != places["ps_shard", shard]
                       for shard in range(PS_SHARDS))

        job.wait_for(are_whole, "all copies are whole", PATIENCE_S)

    def expect_training_goes_on(self, *deaf):
        job, spec = self.begin()
        self.cut(*deaf)
        wait_until(lambda: job.events("copy-lost") or job.events("copy-silent"), "the copy is given up", PATIENCE_S)
        self.wait_for_training(job)
        for name in deaf:
            self.hosts.heal(name)
        self.wait_until_whole_somewhere(job)
        self.wait_for_training(job)
        report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])
        self.assertEqual(job.events("host-lost"), [])

    def test_may_be_cut_both_ways_and_healed(self):
        self.expect_training_goes_on("beta", "gamma")

    def test_may_carry_nothing_to_the_copy_and_heal(self):
        self.expect_training_goes_on("gamma")

    def test_may_carry_nothing_from_the_copy_and_heal(self):
        self.expect_training_goes_on("beta")


if __name__ == "__main__":
    main()
