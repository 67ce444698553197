"""The control pod of a job on many pods makes and replaces them, and knows each, also when its watch has expired; and what a watch did not tell
is missed."""

from unittest import mock

import api_objects
import host_faults
import many_pods
from bench_case import bench_case, main
from images import no_image
from net_hosts import no_namespaces
from waiting import expectation_failed, wait_until

HOSTS, KILLED = 60, 20
MISSED_WITHIN_S = 3


class is_on_many_pods(bench_case):
    bench_parent = host_faults.FILES

    def setUp(self):
        super().setUp()
        try:
            self.job = self.enterContext(many_pods.many_pods_of(self.bench, self.data, HOSTS))
        except (no_namespaces, no_image) as why:
            self.leave_out(why)
        self.job.begin()
        self.job.expect_known(0)

    def test_and_all_that_are_killed_are_replaced(self):
        self.job.kill(KILLED)
        self.assertEqual(len(self.job.made_pods()), HOSTS + KILLED)
        held_up = [one for one in self.job.status().get("held_up_by", []) if "not joined" not in one]
        self.assertEqual(held_up, [], "they run, and nothing is in them that could join")

    def test_and_lists_them_when_its_watch_has_expired(self):
        self.job.expire_watch(KILLED)
        self.job.kill(KILLED)
        self.assertEqual(len(self.job.made_pods()), HOSTS + 2 * KILLED)

    def test_and_misses_what_no_watch_told_until_it_lists_them(self):
        for what in ("MODIFIED", "DELETED"):
            with self.subTest(what):
                known, told = self.job.times_known(), api_objects.chosen_events
                [victim] = self.job.choose(1)
                slot = victim["metadata"]["labels"]["dlrun/slot"]

                def is_lost(one, what=what, slot=slot):  # of the pod that goes, and of its successor
                    return one.kind == "Pod" and one.what == what and one.labels.get("dlrun/slot") == slot and '"phase": "Running"' in one.text

                def told_but_one(changes, *wanted, is_lost=is_lost, told=told):
                    return told([one for one in changes if not is_lost(one)], *wanted)

                with mock.patch.object(api_objects, "chosen_events", told_but_one):
                    self.job.api.space.end(victim)
                    if what == "DELETED":
                        wait_until(self.job.is_complete, "it is replaced")
                    self.assertRaises(expectation_failed, self.job.expect_known, known, MISSED_WITHIN_S)
                self.job.api.compact()
                self.job.expect_known(known)


if __name__ == "__main__":
    main()
