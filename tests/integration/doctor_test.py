"""`dlrun doctor --hosts`: finds what is wrong with hosts before a job begins, and says the way out."""

import json
import os
import subprocess

import net_hosts
import small_data
from bench_case import main
from hosts_case import on_several_hosts

WELL, WRONG, BAD_USAGE = 0, 1, 2
HOUR_S = 3600
DAY_S = 86400
OTHER_CLOCK = """
import re, sys
def off(found):
    return f'"time_us":{int(found[1]) + int(sys.argv[1]) * 10**6}'
for line in sys.stdin:
    print(re.sub(r'"time_us":([0-9]+)', off, line), end="", flush=True)
"""


class doctor(on_several_hosts):
    def setUp(self):
        super().setUp()
        self.job = small_data.write_spec(self.bench.folder / "job.yaml", self.small_job())

    def examine(self, change=lambda content: None, job=True):
        """@returns exit code, and each finding: (host, check) -> what is wrong"""
        content = json.loads(self.list.read_text())
        change(content)
        path = self.bench.folder / "changed.yaml"
        path.write_text(json.dumps(content))
        before = self.files()
        words = [*self.hosts.within(), self.program, "doctor", *([str(self.job)] if job else []), "--hosts", str(path),
                 "--run-dir", str(self.bench.folder / "run")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        self.said = done.stdout + done.stderr
        found = {}
        for line in done.stdout.splitlines():
            judgement, rest = line.split(maxsplit=1)
            host, check, wrong = (*rest.split(": ", 2), "")[:3]
            self.assertEqual(judgement == "wrong", bool(wrong), line)
            found[host, check] = wrong
        self.expect_nobody_left()
        self.assertEqual(self.files(), before, "something is left behind")
        return done.returncode, found

    def files(self):
        """All that is in the folders of the hosts and of the run."""
        return {str(file) for file in self.bench.folder.rglob("*")}

    def expect_wrong(self, host, check, *words, change=lambda content: None):
        code, found = self.examine(change)
        self.assertEqual(code, WRONG, self.said)
        count = sum(bool(wrong) for wrong in found.values())
        self.assertIn(f"found wrong with these hosts: {count}; ", self.said.splitlines()[-1])
        for word in words:
            self.assertIn(word, found[host, check], self.said)
        return {where for where, wrong in found.items() if wrong}

    def within_beta(self, script):
        """A change of the list: beta's agent is started by a shell that does this first."""
        whole = f'if [ "$0" = beta ]; then {script}; fi; exec ip netns exec {self.hosts.prefix}$0 "$@"'
        return lambda content: content.update(start=["unshare", "-m", "bash", "-c", whole, "{host}"])

    def host_with(self, **options):
        return lambda content: content["hosts"][1].update(options)


class finds(doctor):
    def test_no_gpu_on_hosts_that_are_to_have_some_which_the_roots_need_not(self):
        spec = self.small_job(device="cuda")
        self.job = small_data.write_spec(self.bench.folder / "job.yaml", spec)
        wrong = self.expect_wrong("beta", "gpus", "there is no CUDA module", change=lambda content: content["hosts"][0].update(gpus="none"))
        self.assertEqual(wrong, {(host, "gpus") for host in self.hosts.names[1:]})
        self.assertIn(("alpha", "gpus"), self.expect_wrong("beta", "gpus"))

    def test_nothing_where_all_is_well(self):
        code, found = self.examine()
        self.assertEqual((code, set(found.values())), (WELL, {""}), self.said)
        checks = {check for host, check in found if host == "beta"}
        self.assertLessEqual({"name", "start", "build", "address", "clock", "data", "folder", "disk", "memory", "files", "processes",
                              "link to alpha", "link to gamma", "beats"}, checks)

    def test_a_name_that_is_loopback(self):
        self.expect_wrong("beta", "name", "127.0.1.1", change=self.host_with(address="127.0.1.1"))

    def test_an_address_of_no_interface_of_the_host(self):
        self.expect_wrong("beta", "address", "10.78.0.99", "10.78.0.2", change=self.host_with(address="10.78.0.99"))

    def test_a_folder_that_a_job_could_not_have(self):
        taken, no_folder = self.hosts.folder_of("beta") / "taken", self.hosts.folder_of("beta") / "file"
        taken.mkdir()
        (taken / "thesis.tex").touch()
        no_folder.touch()
        too_long = self.hosts.folder_of("beta") / ("x" * 300)
        for folder, words in ((taken, ("of no run", "remove it")), (no_folder / "run", ("is no folder",)), (too_long, ("File name too long",))):
            only = self.expect_wrong("beta", "folder", *words, "name another", change=self.host_with(folder=str(folder)))
            self.assertEqual(only, {("beta", "folder")})
        (taken / "run.id").write_text("0123456789abcdef\n")  # as of a run that is resumed
        code, _ = self.examine(self.host_with(folder=str(taken)))
        self.assertEqual(code, WELL, self.said)

    def test_an_interface_that_the_others_do_not_reach(self):
        inside = self.hosts.namespace("beta")
        net_hosts.ip("-n", inside, "link", "add", "other", "type", "bridge")
        net_hosts.ip("-n", inside, "addr", "add", "10.79.0.2/24", "dev", "other")
        net_hosts.ip("-n", inside, "link", "set", "other", "up")
        wrong = self.expect_wrong("alpha", "link to beta", "10.79.0.2", "another network", change=self.host_with(address="10.79.0.2"))
        self.assertIn(("gamma", "link to beta"), wrong)
        self.assertNotIn(("gamma", "link to alpha"), wrong)

    def with_clock(self, seconds, lifetime_s):
        """What beta says of its time is off by so much."""
        script = self.bench.folder / "other_clock.py"
        script.write_text(OTHER_CLOCK)
        beta = self.within_beta(f'ip netns exec {self.hosts.prefix}$0 "$@" | python3 {script} {seconds}; exit')
        return lambda content: (beta(content), content.update(certificate_lifetime_s=lifetime_s))

    def test_a_clock_that_is_off_by_more_than_certificates_allow(self):
        for seconds, lifetime_s, words in ((5000, DAY_S, ("ahead of", "allow 3900.0 s")),
                                           (-5000, DAY_S, ("behind", "allow 3900.0 s")),
                                           (100, 60, ("allow 15.0 s", "NTP"))):
            only = self.expect_wrong("beta", "clock", *words, change=self.with_clock(seconds, lifetime_s))
            self.assertEqual(only, {("beta", "clock")})
        code, _ = self.examine(self.with_clock(-HOUR_S, DAY_S))
        self.assertEqual(code, WELL, self.said)

    def test_a_start_command_that_fails(self):
        only = self.expect_wrong("beta", "start", "no such key", change=self.within_beta("echo no such key >&2; exit 255"))
        self.assertEqual(only, {("beta", "start")})

    def test_a_program_that_is_not_there(self):
        self.expect_wrong("gamma", "start", "/nowhere/dlrun", change=lambda content: content.update(program="/nowhere/dlrun"))

    def test_another_version(self):
        other = f'exec ip netns exec {self.hosts.prefix}$0 "$@" < <(sed -u "1s/bundle [^ ]*/bundle 0.0.1/")'
        self.expect_wrong("beta", "start", "0.0.1", "program:", change=self.within_beta(other))

    def test_a_place_to_join_that_is_taken_or_of_no_interface(self):
        def joining(listen):
            return lambda content: content.update(join={"listen": listen})

        code, found = self.examine(joining("10.78.0.1:0"))
        self.assertEqual((code, found["alpha", "join.listen"]), (WELL, ""), self.said)
        for listen, words in (("10.78.0.2:7700", ("10.78.0.2:7700", "an address of this host")), ("127.0.0.1:7700", ("no other host",))):
            self.assertEqual(self.expect_wrong("alpha", "join.listen", *words, change=joining(listen)), {("alpha", "join.listen")})
        with self.hosts.listener("alpha", 7700):
            self.expect_wrong("alpha", "join.listen", "in use", "another port", change=joining("10.78.0.1:7700"))

    def test_other_data(self):
        other = self.bench.folder / "other"
        other.mkdir()
        changed = small_data.write_images(other, "train", self.records, seed=2)
        bind = f'mount --bind {changed["records"]} {self.data["records"]}'
        spec = self.small_job()
        spec["data"]["share"] = "off"
        small_data.write_spec(self.job, spec)
        self.assertEqual(self.expect_wrong("beta", "data", self.data["records"], "copy the file",
                                           change=self.within_beta(bind)), {("beta", "data")})

    def test_a_folder_that_cannot_be_written(self):
        (self.hosts.folder_of("beta") / "file").touch()
        self.expect_wrong("beta", "folder", "file",
                          change=self.host_with(folder=str(self.hosts.folder_of("beta") / "file" / "run")))

    def test_a_disk_that_is_mounted_for_reading(self):
        mount = f"mount -t tmpfs -o ro none {self.hosts.folder_of('beta')}"
        only = self.expect_wrong("beta", "folder", str(self.hosts.folder_of("beta")), "Read-only", change=self.within_beta(mount))
        self.assertEqual(only, {("beta", "folder")})

    def test_a_disk_that_is_full(self):
        mount = f"mount -t tmpfs -o size=1m none {self.hosts.folder_of('beta')}"
        self.assertEqual(self.expect_wrong("beta", "disk", "make room", change=self.within_beta(mount)), {("beta", "disk")})

    def test_memory_that_cannot_be_shared(self):
        self.expect_wrong("beta", "memory", "ulimit -f", change=self.within_beta("ulimit -f 1000"))

    def test_too_few_open_files(self):
        self.assertEqual(self.expect_wrong("beta", "files", "ulimit -n", change=self.within_beta("ulimit -n 50")),
                         {("beta", "files")})

    def test_a_port_that_is_closed_in_one_direction(self):
        self.drop("gamma", f"ip saddr {self.hosts.address('beta')} tcp flags & (syn | ack) == syn")
        self.assertEqual(self.expect_wrong("beta", "link to gamma", "10.78.0.3", "firewalls"), {("beta", "link to gamma")})

    def test_a_firewall_that_lets_no_udp_out(self):
        self.expect_no_beats("alpha", f"ip saddr {self.hosts.address('beta')} ip protocol udp")

    def test_a_firewall_that_lets_no_udp_in(self):
        self.expect_no_beats("beta", "ip protocol udp")

    def expect_no_beats(self, name, what):
        self.drop(name, what)
        only = self.expect_wrong("beta", "beats", "UDP", f"{self.hosts.address('alpha')}:", "host alpha", "firewalls")
        self.assertEqual(only, {("beta", "beats")})

    def drop(self, name, what):
        try:
            self.hosts.drop(name, what)
        except (net_hosts.no_namespaces, subprocess.CalledProcessError) as why:
            if os.environ.get("CI"):
                raise
            self.skipTest(f"no packets can be dropped here: {why}")


class is_told(doctor):
    def test_a_list_with_a_host_twice(self):
        code, _ = self.examine(lambda content: content["hosts"].append(content["hosts"][1]))
        self.assertEqual(code, BAD_USAGE)

    def test_nothing_where_there_is_no_job(self):
        code, found = self.examine(job=False)
        self.assertEqual(code, WELL, self.said)
        self.assertNotIn(("beta", "data"), found)


if __name__ == "__main__":
    main()
