"""deploy/bare-metal: the systemd units say what their guide promises, and their commands are ones that dlrun takes."""

import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import small_data
from bench_case import bench_case, main
from service_manager import AGENT_UNIT, JOB_UNIT, is_started_again, settings


def command(program, variables, unit=AGENT_UNIT, instance=""):
    """The words of ExecStart as systemd makes them: a variable that stands alone, as $NAME, may be several."""
    words = []
    for word in shlex.split(settings(unit)["Service", "ExecStart"].replace("%i", instance))[1:]:
        alone = re.fullmatch(r"\$(\w+)", word)
        words += variables[alone[1]].split() if alone else [re.sub(r"\$\{(\w+)\}", lambda name: variables[name[1]], word)]
    return [program, *words]


class unit(bench_case):
    path = AGENT_UNIT

    def expect(self, section, **wanted):
        for key, value in wanted.items():
            self.assertEqual(settings(self.path).get((section, key)), value, key)

    def expect_no_rights(self):
        self.expect("Service", NoNewPrivileges="yes", ProtectSystem="strict", CapabilityBoundingSet="")
        for breaks in ("MemoryDenyWriteExecute", "ProcSubset", "PrivateNetwork", "PrivateUsers"):
            self.assertNotIn(("Service", breaks), settings(self.path))
        families = settings(self.path)["Service", "RestrictAddressFamilies"].split()
        self.assertEqual(sorted(families), ["AF_INET", "AF_NETLINK", "AF_UNIX"])

    def expect_understood(self, instance=""):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not here")
        name = self.path.name.replace("@", f"@{instance}")
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, name)
            copy.write_text(self.path.read_text().replace("/usr/local/bin/dlrun", "/bin/true").replace("User=dlrun", "User=root"))
            done = subprocess.run(["systemd-analyze", "verify", "--recursive-errors=no", str(copy)], capture_output=True, text=True)
        self.assertEqual([line for line in done.stderr.splitlines() if name in line], [], done.stderr)


class of_agents(unit):
    def test_ends_all_that_it_started_and_gives_workers_the_time_to_hand_back(self):
        self.expect("Service", KillMode="control-group", KillSignal="SIGTERM", OOMPolicy="continue")
        self.assertGreater(int(settings(self.path)["Service", "TimeoutStopSec"]), 30)  # cluster.leave_grace_s

    def test_tries_again_what_trying_again_may_help(self):
        self.expect("Service", Restart="on-failure", RestartPreventExitStatus="2 4")
        self.expect("Unit", StartLimitIntervalSec="0")

    def test_has_its_token_from_a_credential_and_from_no_argument_or_variable(self):
        self.expect("Service", LoadCredential="token:/etc/dlrun/token", EnvironmentFile="/etc/dlrun/agent.env")
        self.assertNotIn("dlrun-token", self.path.read_text())
        self.assertNotIn("TOKEN", (self.path.parent / "agent.env").read_text())

    def test_has_no_rights_and_keeps_what_the_program_needs(self):
        self.expect("Service", DynamicUser="yes")
        self.expect_no_rights()

    def test_starts_dlrun_with_options_that_it_has(self):
        file = self.bench.folder / "token"
        file.write_text("none\n")
        file.chmod(0o440)  # as systemd shows a credential
        variables = {"DLRUN_JOIN": "127.0.0.1:1", "CREDENTIALS_DIRECTORY": str(self.bench.folder), "STATE_DIRECTORY": "/nowhere"}
        done = subprocess.run(command(self.program, variables), stdin=subprocess.DEVNULL, capture_output=True, text=True, env={})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there is no token of a job in it", done.stderr)

    def test_is_one_that_systemd_understands(self):
        self.expect_understood()


class of_jobs(unit):
    path = JOB_UNIT

    def test_starts_again_what_died_and_rests_when_that_helps_nobody(self):
        self.expect("Unit", StartLimitIntervalSec="1800", StartLimitBurst="60")
        self.assertLess(int(settings(self.path)["Service", "RestartSec"]), 60 / 4)  # cluster.orphan_grace_s
        for code, again in ((0, False), (1, True), (2, False), (3, False), (130, False), (-9, True)):
            self.assertEqual(is_started_again(code), again, code)

    def test_asks_the_root_alone_to_end_and_kills_what_is_left(self):
        self.expect("Service", KillMode="mixed", KillSignal="SIGTERM", OOMPolicy="continue")
        self.assertGreater(int(settings(self.path)["Service", "TimeoutStopSec"]), 30)

    def test_has_no_rights_and_keeps_what_the_program_needs(self):
        self.expect_no_rights()

    def test_starts_dlrun_with_options_that_it_has_again_and_again(self):
        file = self.bench.folder / "one.yaml"
        small_data.write_spec(file, self.spec(epochs=1))
        variables = {"STATE_DIRECTORY": str(self.bench.folder), "DLRUN_OPTIONS": "--set cluster.workers=1 --json"}
        words = [word.replace("/etc/dlrun/jobs", str(self.bench.folder)) for word in command(self.program, variables, JOB_UNIT, "one")]
        for _ in range(2):
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('"type":"report"', done.stdout.splitlines()[-1])
        self.assertTrue((self.bench.folder / "run" / "report.json").exists())

    def test_is_one_that_systemd_understands(self):
        self.expect_understood("one")


if __name__ == "__main__":
    main()
