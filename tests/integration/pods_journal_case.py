"""Base of tests of a job on pods whose journal is in an etcd."""

from dlrun_job import wait_until
from etcd_members import etcd_members, no_etcd, own_authority
from kubernetes_schemas import held_to_schemas
from pods_case import COMPLETED, HOSTS, NAME, on_pods
from waiting import PATIENCE_S

MOUNTED = "/run/secrets/dlrun-journal"
SECRET = "etcd-of-team"
FILES = {"ca_file": "ca.crt", "certificate_file": "tls.crt", "key_file": "tls.key"}


class with_an_etcd(held_to_schemas, on_pods):
    """Which takes clients with a certificate alone, at an address of its own; no run folder outlives its pod."""

    host_count, claims = 9, ("--model-claim", "models")

    def setUp(self):
        super().setUp()
        where = self.cluster.free_hosts.pop()
        authority = own_authority(self.bench.folder / "etcd-authority")
        self.etcd = self.enter_or_skip(
            etcd_members(self.bench.folder / "etcd", [self.hosts.address(where)], [self.hosts.within(where)], authority), no_etcd)
        self.etcd_host = where
        certificate, key = authority.issue("dlrun")
        self.files = {"ca.crt": authority.certificate.read_text(), "tls.crt": certificate.read_text(), "tls.key": key.read_text()}
        self.keep_files(self.files)

    def keep_files(self, files):
        self.cluster.objects["Secret", SECRET] = {"kind": "Secret", "metadata": {"name": SECRET}, "stringData": files}

    def spec(self, **options):
        spec = self.unhurried_spec()
        spec["cluster"]["orphan_grace_s"] = PATIENCE_S  # hosts end before only if they do not find the successor
        spec["cluster"]["journal"] = self.etcd.journal(**{key: f"{MOUNTED}/{name}" for key, name in FILES.items()}, **options)
        return spec

    def words_for(self, verb, spec, *options):
        return super().words_for(verb, spec, "--journal-secret", SECRET, *options)

    def control_pods(self):
        return [one for one in self.cluster.pods if one.group == NAME]

    def expect_end(self, spec):
        """With the model in the claim. @returns the report"""
        del spec["cluster"]["journal"]
        report = self.expect_complete(spec)
        self.assertIn(report["parameters_sha256"], self.exported())
        return report

    def expect_followed(self, spec, step):
        """By the newest control pod, which takes over what runs on the hosts; none of them is started again."""
        wait_until(lambda: self.events("roles-adopted"), "the next root takes over")
        self.wait_until_trains(beyond=step)
        report = self.expect_end(spec)
        self.assertEqual(self.control_pods()[-1].exit_codes, [COMPLETED])
        self.expect_ended(*self.hosts_pods)
        self.assertEqual(len(self.made_pods()), HOSTS, "it adopts them")
        return report
