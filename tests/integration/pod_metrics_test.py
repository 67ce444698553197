"""Metrics of a job on pods, for a Prometheus in the cluster: who reaches them, and who is let in."""

import json
import re
import subprocess
import sys

import small_data
from bench_case import main
from connections import listened_ports, lost_connections, lost_packets
from dlrun_job import wait_until
from etcd_members import own_authority
from manifests_case import BAD_USAGE, host_template, writes_manifests
from pods_case import NAME, on_pods

SECRET, PORT = "metrics", 9464
SCRAPE = """
import http.client, ssl, sys
address, port, name, authority, *shown = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
context.check_hostname = False
if shown:
    context.load_cert_chain(*shown)
asking = http.client.HTTPSConnection(address, int(port), timeout=10, context=context)
asking.request("GET", "/metrics")
server = str(asking.sock.getpeercert())
answer = asking.getresponse()
print(answer.status, name in server, answer.read().decode())
"""


class writes_what_a_prometheus_needs(writes_manifests):
    def made(self, *options, job=None):
        objects = self.objects("--name", "x", "--metrics-secret", SECRET, *options, job=job)
        return objects, objects["Job", "x"]["spec"]["template"]["spec"]

    def test_the_control_pod_alone_has_certificate_and_port(self):
        objects, control = self.made()
        [container] = control["containers"]
        self.assertEqual(container["ports"][1:], [{"name": "metrics", "containerPort": PORT, "protocol": "TCP"}])
        self.assertEqual([one["secret"]["secretName"] for one in control["volumes"] if one["name"] == "metrics"], [SECRET])
        self.assertNotIn("metrics", json.dumps(host_template(objects)))
        self.assertNotIn("PodMonitor", {kind for kind, _ in objects})
        self.assertNotIn("metrics", json.dumps(self.pod_specs("--name", "x")), "unless they are asked for")

    def test_from_one_namespace_to_one_port_of_one_pod(self):
        for options, name_space in (((), "monitoring"), (("--metrics-namespace", "prometheus"), "prometheus")):
            objects, control = self.made(*options)
            spec = objects["NetworkPolicy", "x-metrics"]["spec"]
            self.assertEqual(spec["podSelector"]["matchLabels"], objects["Job", "x"]["spec"]["template"]["metadata"]["labels"])
            self.assertEqual(spec["ingress"], [{"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name_space}}}],
                                                "ports": [{"port": PORT, "protocol": "TCP"}]}])

    def test_at_the_port_that_the_job_names(self):
        objects, control = self.made("--set", "observability.prometheus_port=9999")
        self.assertIn("observability.prometheus_port=9999", control["containers"][0]["args"])
        self.assertEqual((control["containers"][0]["ports"][1]["containerPort"], objects["NetworkPolicy", "x-metrics"]["spec"]["ingress"][0]["ports"][0]["port"]),
                         (9999, 9999))

    def test_the_prometheus_operator_is_told_where_that_is_wanted(self):
        objects, control = self.made("--pod-monitor", "--namespace", "team-a")
        monitor = objects["PodMonitor", "x"]
        self.assertEqual((monitor["apiVersion"], monitor["metadata"]["namespace"]), ("monitoring.coreos.com/v1", "team-a"))
        self.assertEqual(monitor["spec"]["selector"]["matchLabels"], objects["Job", "x"]["spec"]["template"]["metadata"]["labels"])
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["scheme"]), (control["containers"][0]["ports"][1]["name"], "https"))
        tls = endpoint["tlsConfig"]
        self.assertEqual((tls["serverName"], tls["ca"]["secret"], tls["cert"]["secret"], tls["keySecret"]),
                         ("x", *({"name": SECRET, "key": key} for key in ("ca.crt", "tls.crt", "tls.key"))))

    def test_what_cannot_be_is_refused(self):
        own = small_data.write_spec(self.bench.folder / "own.yaml", self.spec() | {"observability": {
            "prometheus_port": PORT, "prometheus_tls": {"address": "10.0.0.1", "certificate_file": "/c", "key_file": "/k", "ca_file": "/a"}}})
        for options, job, words in (
                (("--metrics-secret", "A_b"), None, ("--metrics-secret 'A_b'",)), (("--metrics-secret", SECRET, "--metrics-namespace", "a.b"), None, ("--metrics-namespace 'a.b'",)),
                (("--pod-monitor",), None, ("--pod-monitor", "--metrics-secret")), (("--metrics-namespace", "a"), None, ("--metrics-secret",)),
                (("--metrics-secret", SECRET, "--set", "observability.prometheus_port=7700"), None, ("observability.prometheus_port", "hosts join", "name another")),
                (("--metrics-secret", SECRET, "--set", "observability.prometheus_port=7701"), None, ("observability.prometheus_port", "kubelets probe", "name another")),
                ((), own, ("observability.prometheus_tls", "--metrics-secret"))):
            code, told, complaint = self.call(*options, job=job)
            self.assertEqual((code, told), (BAD_USAGE, ""), complaint)
            for word in words:
                self.assertIn(word, complaint)


class are_served(on_pods):
    host_count = 9

    def setUp(self):
        super().setUp()
        self.authority, self.other = (own_authority(self.bench.folder / name) for name in ("own", "other"))
        certificate, key = self.authority.issue(NAME)
        self.cluster.objects["Secret", SECRET] = {"kind": "Secret", "metadata": {"name": SECRET}, "stringData": {
            "ca.crt": self.authority.certificate.read_text(), "tls.crt": certificate.read_text(), "tls.key": key.read_text()}}
        self.prometheus, self.namesake = (self.cluster.free_hosts.pop() for _ in range(2))
        self.cluster.policies.add_other(self.prometheus, "monitoring")
        self.cluster.policies.add_other(self.namesake, "team-b", {"app.kubernetes.io/name": "prometheus"})

    def words_for(self, verb, spec, *options):
        return super().words_for(verb, spec, "--metrics-secret", SECRET, *options)

    def scrape(self, *shown, port=PORT):
        """@returns what is said, or "" for who is not let in"""
        words = [sys.executable, "-c", SCRAPE, self.hosts.address(self.control.host), str(port), NAME, str(self.authority.certificate), *map(str, shown)]
        done = subprocess.run([*self.hosts.within(self.prometheus), *words], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    def hosts_with_memory(self, told):
        """Those of which less is used than may be."""
        used, limit = ({host: float(value) for host, value in re.findall(rf'^{name}{{host="(.*)"}} (.*)$', told, re.M)}
                       for name in ("dlrun_host_memory_bytes", "dlrun_host_memory_limit_bytes"))
        return [host for host in used if 0 < used[host] < limit[host]]

    def expect_let_in_there_alone(self):
        """To no other port, and nobody of another namespace."""
        address = self.hosts.address(self.control.host)
        others = [(address, port) for port in listened_ports(self.hosts, self.control.host) if port != PORT]
        for host, targets in ((self.prometheus, others), (self.namesake, [*others, (address, PORT)])):
            self.assertTrue(targets)
            lost = lost_connections(self.hosts, host, targets, lambda: lost_packets(self.hosts, self.control.host, "ingress"))
            self.assertEqual(lost, [], f"from {host}")

    def test_to_who_has_a_certificate_and_on_by_the_next_control_pod(self):
        spec = self.unhurried_spec()
        self.start(spec)
        self.wait_until_trains()
        own = self.authority.issue("prometheus")
        told = self.scrape(*own)
        self.assertTrue(told.startswith("200 True"), told)
        self.assertIn(f'dlrun_info{{job="{spec["name"]}"', told)
        names = [host["name"] for host in self.status()["hosts"]]
        wait_until(lambda: names == self.hosts_with_memory(self.scrape(*own)), "each pod has told of its memory")
        self.assertGreater(len(names), 1)
        for shown in ((), self.other.issue("prometheus")):
            self.assertEqual(self.scrape(*shown), "")
        self.expect_let_in_there_alone()
        self.control.kill_container("Error")
        wait_until(lambda: "dlrun_step" in self.scrape(*own), "the next start of the control pod serves them")
        self.expect_complete(spec)


if __name__ == "__main__":
    main()
