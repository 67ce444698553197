"""Jobs whose network parts and heals, in both directions, in one, between two hosts, in halves, and again and again: the bits of one
host, and nobody is left out afterwards."""

import random

import partitions
from bench_case import main
from hosts_case import on_several_hosts

EPOCHS = 40


class bears_partitions(on_several_hosts):
    host_count = 4

    def expect_borne(self, *kinds, log="every_step"):
        spec = self.small_job(epochs=EPOCHS)
        spec["durability"] = {"log": log}  # durability.replicas: auto
        source = random.Random(self.id())
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_for(partitions.is_settled, "all hosts and copies are there", partitions.PATIENCE_S)
        with partitions.network(self.hosts) as net:
            done = [partitions.pass_through(job, net, partitions.draw(kind, source, self.hosts.names)) for kind in kinds]
        print("; ".join(f"{one.drawn.describe()}: steps after {one.resumed_ms:.0f} ms, all after {one.settled_s:.1f} s" for one in done), flush=True)
        self.expect_same_bits(job, spec, may_redo=True)

    def test_of_a_host_from_all(self):
        self.expect_borne("cut", "deaf", "mute")

    def test_of_two_hosts_from_each_other(self):
        self.expect_borne("parted", "half_parted", log="snapshots")

    def test_into_halves(self):
        self.expect_borne("split", "split")

    def test_again_and_again(self):
        self.expect_borne("flapping", "flapping")


if __name__ == "__main__":
    main()
