"""Jobs on pods under faults of every kind, one after the other and at once: the bits of one host, no pod and no process left."""

import random

import host_faults
import pod_faults
import pod_shapes
from bench_case import bench_case, main
from etcd_members import no_etcd
from net_hosts import no_namespaces


class bears_faults(bench_case):
    bench_parent = host_faults.FILES

    def expect_borne(self, plan, **shape):
        """@param plan [kinds that come at once]"""
        shape = pod_shapes.pod_shape(**{"workers": 3, "ps_shards": 2, "pod_hosts": 2, "durability": {"log": "every_step"}, "image_late": False,
                                        **shape})
        reference = host_faults.references(self.bench, self.data).of(shape)
        try:
            done = pod_faults.run_struck(self.bench, shape, plan, self.data, reference, random.Random(self.id()))
        except (no_namespaces, no_etcd) as why:
            self.leave_out(why)
        print(f"borne: {done.recovered_s}", flush=True)
        self.assertEqual([kinds for kinds, _ in done.recovered_s], plan)

    def test_of_containers(self):
        self.expect_borne([["killed"], ["failed"], ["oom"], ["oom_twice"], ["role"]])

    def test_of_a_container_that_ends_whenever_it_is_started(self):
        self.expect_borne([["looping"], ["looping", "control_node_gone"]], durability={"log": "every_step", "replicas": 1})

    def test_of_pods(self):
        self.expect_borne([["deleted"], ["evicted"], ["no_room"], ["pending"], ["image"]], image_late=True)

    def test_of_nodes(self):
        self.expect_borne([["drained"], ["node_gone"], ["policy"]], pod_hosts=3)

    def test_of_the_control_pod(self):
        self.expect_borne([["leader"], ["control_deleted"], ["control_node_gone"], ["suspended"]], durability={"log": "snapshots"})

    def test_of_the_control_pod_and_its_folder(self):
        self.expect_borne([["leader"], ["control_deleted"], ["control_node_gone"], ["control_node_gone", "api_away"]], in_etcd=True)

    def test_of_the_api_server(self):
        self.expect_borne([["api_away"], ["compacted"]])

    def test_of_several_at_once(self):
        self.expect_borne([["killed", "deleted"], ["leader", "compacted"], ["node_gone", "api_away"]], pod_hosts=3)


if __name__ == "__main__":
    main()
