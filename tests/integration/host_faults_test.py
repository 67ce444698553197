"""Jobs on four hosts under faults of every kind, several at once, and everything: the bits of one host, nothing left on any."""

import random

import host_faults
from bench_case import bench_case, main
from etcd_members import no_etcd
from net_hosts import no_namespaces


class bears_faults(bench_case):
    bench_parent = host_faults.FILES

    def expect_borne(self, plan, **shape):
        """@param plan [(step from which on, kinds that come at once)], of 1008 steps"""
        shape = host_faults.job_shape(**{"model": "mlp_dropout", "workers": 3, "ps_shards": 2, "durability": {"log": "every_step", "replicas": 1},
                                         "in_etcd": False, "is_outlived": True, **shape})
        reference = host_faults.references(self.bench, self.data).of(shape)
        try:
            done = host_faults.run_struck(self.bench, shape, plan, self.data, reference, random.Random(self.id()))
        except (no_namespaces, no_etcd) as why:
            self.leave_out(why)
        print(f"borne: {done.done}", flush=True)
        self.assertEqual(done.done[0], plan[0])  # it may be over before the last, where we get no processor

    def test_of_hosts_one_after_the_other(self):
        self.expect_borne([(50, ["lost"]), (180, ["cut"]), (310, ["deaf"]), (440, ["mute"]), (570, ["agent"])])

    def test_of_hosts_and_roles_at_once(self):
        self.expect_borne([(50, ["ps_shard", "lost"]), (300, ["worker", "coordinator", "cut", "mute"]), (600, ["agent", "deaf"])],
                          durability={"log": "snapshots", "replicas": 1}, is_outlived=False)

    def test_of_everything(self):
        self.expect_borne([(100, ["everything"]), (300, ["lost"]), (600, ["worker", "everything"])], workers=5, ps_shards=3)

    def test_of_everything_with_the_journal_in_an_etcd(self):
        self.expect_borne([(50, ["cut"]), (200, ["coordinator", "lost"]), (400, ["everything"]), (600, ["mute"])], in_etcd=True)

    def test_of_copies_and_hosts_while_an_operator_changes_things(self):
        self.expect_borne([(50, ["scaled", "parted"]), (200, ["keeper"]), (350, ["lost"]), (500, ["drained"]), (600, ["cut"])],
                          durability={"log": "every_step"})

    def test_of_two_hosts_at_once_with_three_stores(self):
        self.expect_borne([(50, ["lost", "cut"]), (250, ["keeper", "agent", "lost"]), (450, ["ps_shard", "deaf"])],
                          durability={"log": "snapshots", "replicas": 3})


if __name__ == "__main__":
    main()
