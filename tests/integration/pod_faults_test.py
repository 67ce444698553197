"""Jobs on pods under faults of every kind, one after the other and at once: the bits of one host, no pod and no process left."""

import re
import random

import host_faults
import pod_faults
import pod_shapes
from bench_case import bench_case, main
from etcd_members import no_etcd
from net_hosts import no_namespaces
from pod_jobs import NAME
from pods_case import on_pods
from waiting import wait_until

BEHIND_TOO_MUCH_S = -90 * 60


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

    def test_of_clocks(self):
        self.expect_borne([["clock_ahead"], ["clock_behind"], ["clock_ahead", "clock_behind", "leader"]])

    def test_of_a_container_that_ends_whenever_it_is_started(self):
        self.expect_borne([["looping"], ["looping", "control_node_gone"]], durability={"log": "every_step", "replicas": 1})

    def test_of_pods(self):
        self.expect_borne([["deleted"], ["evicted"], ["no_room"], ["pending"], ["image"]], image_late=True)

    def test_of_a_pod_that_is_cut_off_before_it_joins(self):
        self.expect_borne([["cut_before_join"], ["cut_before_join", "leader"]])

    def test_of_nodes(self):
        self.expect_borne([["drained"], ["node_gone"], ["policy"]], pod_hosts=3)

    def test_of_the_control_pod(self):
        self.expect_borne([["leader"], ["control_deleted"], ["control_node_gone"], ["suspended"]], durability={"log": "snapshots"})

    def test_of_the_control_pod_and_its_folder(self):
        self.expect_borne([["leader"], ["control_deleted"], ["control_node_gone"], ["control_node_gone", "api_away"]], in_etcd=True)

    def test_of_the_api_server(self):
        self.expect_borne([["api_away"], ["compacted"]])

    def test_of_an_api_server_whose_etcd_was_restored(self):
        self.expect_borne([["etcd_restored"], ["etcd_restored"]])

    def test_of_several_at_once(self):
        self.expect_borne([["killed", "deleted"], ["leader", "compacted"], ["node_gone", "api_away"]], pod_hosts=3)


class tells(on_pods):
    def setUp(self):
        super().setUp()
        self.spec = self.unhurried_spec()
        self.start(self.spec)
        self.wait_until_trains()

    def events_of(self, kind, host):
        return [event for event in self.events(kind) if event["host"] == host]

    def test_which_pod_is_cut_off_before_it_joins_and_what_it_has_to_reach_and_trains_meanwhile(self):
        before = self.hosts_pods[0]
        self.cluster.unreachable.add(before.host_name)
        before.delete()
        [held_up] = wait_until(lambda: self.status().get("held_up_by"), "it is held up")
        [silent] = [one for one in self.pods_of_hosts() if one.host_name == before.host_name]
        own, of_root = (self.hosts.address(one.host) for one in (silent, self.control))
        for word in (f"pod {silent.name} ({own}) has run for 30 s", f"control pod {self.control.name} ({of_root}) at TCP port 7700"):
            self.assertIn(word, held_up)
        self.assertEqual(self.control.said().count(held_up), 1)
        wait_until(lambda: f"to join at {NAME}:7700 by TCP, from {own} to {of_root}:7700; what came of it last: " in silent.said(),
                   "the pod says so too")
        step = self.status()["step"]
        wait_until(lambda: self.status()["step"] > step, "it trains without that pod")
        self.assertEqual(self.made_for(before.host_name), {before.name, silent.name}, "no other pod is made in its place")
        self.cluster.heal()
        self.wait_until_trains()
        wait_until(lambda: self.status() and "held_up_by" not in self.status(), "nothing holds it up")
        self.expect_complete(self.spec)

    def test_which_clock_is_wrong_where_certificates_do_not_hold_and_has_another_pod_made(self):
        wrong = self.hosts_pods[0]
        wrong.clock_ahead_s = BEHIND_TOO_MUCH_S
        wrong.kill_container()
        why = re.compile("the clocks differ: here it is .* UTC, and on the root's host it was .* UTC when that made the certificate")
        wait_until(lambda: any(why.search(event["text"]) for event in self.events_of("host-not-joined", wrong.host_name)), "the root says why")
        wait_until(lambda: why.search(wrong.said()), "the pod says why")
        self.assertEqual(wrong.said().count("has joined the job"), 1, "it joined before its clock went wrong")
        wait_until(lambda: len(self.made_for(wrong.host_name)) == 2, "another pod is made")
        self.wait_until_trains()
        self.expect_complete(self.spec)


if __name__ == "__main__":
    main()
