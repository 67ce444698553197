"""Jobs on pods whose nodes are all lost, with all that was stored there: they go on from the archive in a claim (R45)."""

from bench_case import main
from dlrun_job import wait_until
from pods_case import NAME, on_pods


class loses_all_its_nodes(on_pods):
    host_count = 9
    claims = ("--archive-claim", "archives", "--archive-every", "1s", "--model-claim", "models")

    def test_and_goes_on_from_the_claim(self):
        spec = self.unhurried_spec()
        self.start(spec)
        self.wait_until_trains()
        step = wait_until(lambda: (self.status().get("archive") or {}).get("step"), "an archive is made")
        lost = (self.control, *self.hosts_pods)
        nodes = {one.node for one in lost}
        for node in nodes:
            self.cluster.nodes.lose(node)
        for node in nodes:
            self.cluster.nodes.replace(node)
        wait_until(lambda: self.control_pod() not in (None, self.control), "there is another control pod")
        self.wait_until_trains(beyond=step)
        self.assertFalse(set(self.pods_of_hosts()) & set(lost), "all of them are new, though under the names of those")
        [back] = [one for one in self.expect_complete(spec)["rewinds"] if one["timeline"] == 1000]
        self.assertGreaterEqual(back["version"], step)
        self.assertIn("goes on from version", self.control_said())

    def control_said(self):
        return "".join(one.said() for one in self.cluster.pods if one.group == NAME)


if __name__ == "__main__":
    main()
