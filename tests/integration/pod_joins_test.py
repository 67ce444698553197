"""As which pods hosts join: what a host says is held against what the API server says."""

from bench_case import main
from pod_jobs import NAME
from pods_case import on_pods
from waiting import wait_until

FAILED, BAD_USAGE = 1, 2


class joins_only(on_pods):
    def setUp(self):
        super().setUp()
        self.spec = self.unhurried_spec()
        self.start(self.spec)
        self.wait_until_trains()

    def come_as(self, host, *options):
        """From another pod of the job, which has the key. @returns exit code, complaints"""
        code, _, why = self.hosts_pods[1].execute(
            "/usr/local/bin/dlrun", "agent", "--join", f"{NAME}:7700", "--key-file", "/run/secrets/dlrun/key",
            "--folder", "/var/lib/dlrun", "--name", host, "--wait-s", "1", *options)
        return code, why

    def test_a_pod_that_stays_and_not_one_that_is_deleted(self):
        leaves = self.hosts_pods[0]
        leaves.is_cut_off = True  # its kubelet does not hear of the deletion
        self.api.space.end(leaves.object)
        wait_until(lambda: len(self.made_for(leaves.host_name)) == 2, "another pod is made")
        leaves.kill_container()
        wait_until(lambda: f"pod {leaves.name} is to end, and another one takes its place" in leaves.said(), "it is refused")
        [comes] = [one for one in self.pods_of_hosts() if one.host_name == leaves.host_name and one is not leaves]
        wait_until(lambda: "has joined the job" in comes.said(), "the other pod is in")
        self.wait_until_trains()
        self.assertEqual(leaves.said().count("has joined the job"), 1, "before it was deleted")
        leaves.is_cut_off = False
        self.cluster.on_pod_to_end(leaves.object)
        self.expect_complete(self.spec)

    def test_a_pod_of_the_job_and_nobody_else_who_has_the_key(self):
        host, own = self.hosts_pods[0].host_name, self.hosts.address(self.hosts_pods[1].host)
        uid = self.hosts_pods[0].object["metadata"]["uid"]
        self.hosts_pods[0].kill_container()  # its place is free for a moment
        for options in ((), ("--pod", uid), ("--pod", "another")):
            code, why = self.come_as(host, *options)
            self.assertEqual(code, FAILED, why)
            self.assertIn(f"host {host}: Kubernetes tells of no pod of it with ", why)
            self.assertIn(f"address {own}", why)
        code, why = self.come_as("stranger")
        self.assertEqual(code, BAD_USAGE, why)
        self.assertIn(f"host stranger is no pod of job '{NAME}', and its hosts are its pods", why)
        code, why = self.come_as(host, "--pod", "no uid")
        self.assertEqual(code, BAD_USAGE, why)
        self.assertIn('"no uid" is no uid of a pod', why)
        self.expect_complete(self.spec)


if __name__ == "__main__":
    main()
