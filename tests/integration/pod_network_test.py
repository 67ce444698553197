"""Network policies of a job on pods: strangers reach no pod, pods reach no more than they have to, and a job that lacks what a policy is to let
through does not train. Each other test of pods trains under the policies of its manifests as well."""

import socket

import small_cluster
import yaml
from bench_case import main
from connections import can_connect, listened_ports, lost_connections, lost_packets
from dlrun_job import wait_until
from pod_jobs import API_PORT
from pods_case import HOSTS, NAME, on_pods

JOIN_PORT, NAME_PORT, OTHER_PORT = 7700, 53, 8080


class lets_through(on_pods):
    host_count = 9

    def setUp(self):
        super().setUp()
        self.stranger, self.namesake = self.cluster.free_hosts.pop(), self.cluster.free_hosts.pop()

    def start_training(self):
        spec = self.unhurried_spec()
        self.start(spec)
        self.wait_until_trains()
        self.all_pods = [self.control, *self.hosts_pods]
        return spec

    def doors_of(self, pod):
        return [(self.hosts.address(pod.host), port) for port in listened_ports(self.hosts, pod.host)]

    def expect_lost(self, host, targets, pod, chain):
        """@param pod, chain: whose rules lose them"""
        self.assertTrue(targets)
        through = lost_connections(self.hosts, host, targets, lambda: lost_packets(self.hosts, pod.host, chain))
        self.assertEqual(through, [], f"from {host}")

    def test_only_pods_of_the_job_to_pods_of_the_job(self):
        spec = self.start_training()
        self.cluster.policies.add_other(self.namesake, "team-b", self.control.labels)
        with self.cluster.lock:
            self.cluster.renew_network()
        self.assertIn(JOIN_PORT, listened_ports(self.hosts, self.control.host))
        for pod in self.all_pods:
            other = next(one for one in self.all_pods if one is not pod)
            for door in self.doors_of(pod):
                self.assertTrue(can_connect(self.hosts, other.host, *door))
            for host in (self.stranger, self.namesake, self.api.where):
                self.expect_lost(host, self.doors_of(pod), pod, "ingress")
        self.expect_complete(spec)

    def test_only_the_control_pod_to_the_api_server_and_all_to_the_name_service(self):
        spec = self.start_training()
        api, elsewhere = self.hosts.address(self.api.where), self.hosts.address(self.stranger)
        for port in (NAME_PORT, OTHER_PORT, API_PORT):
            self.enterContext(self.hosts.listener(self.stranger, port))
        self.assertTrue(can_connect(self.hosts, self.control.host, api, API_PORT))
        for pod in self.all_pods:
            self.assertTrue(can_connect(self.hosts, pod.host, elsewhere, NAME_PORT))
            self.expect_lost(pod.host, [(elsewhere, OTHER_PORT)], pod, "egress")
        for pod in self.hosts_pods:
            self.expect_lost(pod.host, [(api, API_PORT), (elsewhere, API_PORT)], pod, "egress")
        self.expect_complete(spec)

    def test_datagrams_to_the_name_service_alone(self):
        self.start_training()
        pod, address = self.hosts_pods[0], self.hosts.address(self.stranger)
        heard = {port: self.enterContext(self.bound(port)) for port in (OTHER_PORT, NAME_PORT)}
        lost = lost_packets(self.hosts, pod.host, "egress")
        for port in heard:
            self.assertEqual(self.is_sent(pod, (address, port)), port == NAME_PORT)
        self.assertEqual(heard[NAME_PORT].recv(1), b"?")
        self.assertGreater(lost_packets(self.hosts, pod.host, "egress"), lost)
        heard[OTHER_PORT].setblocking(False)
        self.assertRaises(BlockingIOError, heard[OTHER_PORT].recv, 1)

    def bound(self, port):
        """A socket of the stranger."""
        made = self.hosts.call_within(self.stranger, lambda: socket.socket(type=socket.SOCK_DGRAM))
        made.bind((self.hosts.address(self.stranger), port))
        return made

    def is_sent(self, pod, target):
        """Whoever sends a datagram that its own rules lose is told so."""
        with self.hosts.call_within(pod.host, lambda: socket.socket(type=socket.SOCK_DGRAM)) as one:
            try:
                return one.sendto(b"?", target) == 1
            except PermissionError:
                return False

    def test_to_a_pod_that_replaces_another_at_another_address_and_no_more_to_that(self):
        spec = self.start_training()
        victim = self.hosts_pods[1]
        address = self.hosts.address(victim.host)
        victim.delete()
        wait_until(lambda: len(self.events("host-joined")) == HOSTS + 1, "its successor joins")
        [successor] = [one for one in self.pods_of_hosts() if one not in self.hosts_pods]
        self.assertNotEqual(successor.host, victim.host)
        for door in self.doors_of(successor):
            self.assertTrue(can_connect(self.hosts, self.control.host, *door))
        self.expect_lost(self.stranger, self.doors_of(successor), successor, "ingress")
        self.expect_lost(self.control.host, [(address, OTHER_PORT)], self.control, "egress")
        self.expect_lost(victim.host, self.doors_of(self.control), self.control, "ingress")
        self.expect_complete(spec)


class lacks(on_pods):
    """What a policy is to let through."""

    def begin(self, spoil):
        """@param spoil takes something from the policies, name -> spec"""
        objects = small_cluster.read_manifests(self.manifests(self.small_job()))
        spoil({name: one["spec"] for (kind, name), one in objects.items() if kind == "NetworkPolicy"})
        self.cluster.apply(yaml.safe_dump_all(objects.values()))
        [self.control] = self.cluster.start(NAME)

    def test_the_port_of_the_api_server_and_no_pod_of_a_host_is_made(self):
        def spoil(policies):
            [rule] = policies[f"{NAME}-control"]["egress"]
            rule["ports"] = [one for one in rule["ports"] if one["port"] != API_PORT]

        self.begin(spoil)
        wait_until(lambda: lost_packets(self.hosts, self.control.host, "egress"), "the control pod asks")
        address = f"{self.hosts.address(self.api.where)}:{API_PORT}"
        wait_until(lambda: f"cannot list pods: https://{address}: Connection timed out" in self.control.said(), "it says that nobody answers")
        self.assertEqual((self.made_pods(), self.api.asked), (set(), []))

    def test_the_port_at_which_hosts_join(self):
        def spoil(policies):
            policies[NAME]["ingress"][0]["ports"] = [{"port": JOIN_PORT + 1, "protocol": "TCP"}]

        self.begin(spoil)
        wait_until(lambda: len(self.pods_of_hosts()) == HOSTS, "the pods of hosts are there")
        wait_until(lambda: lost_packets(self.hosts, self.control.host, "ingress"), "one comes")
        wait_until(lambda: "NetworkPolicy" in self.control.said(), "the control pod says what may be in the way")
        self.assertEqual(self.events("host-joined"), [])


if __name__ == "__main__":
    main()
