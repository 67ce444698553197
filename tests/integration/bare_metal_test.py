"""deploy/bare-metal: the systemd unit says what its guide promises, and its command is one that dlrun takes."""

import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

from bench_case import bench_case, main

UNIT = pathlib.Path(__file__).resolve().parents[2] / "deploy/bare-metal/dlrun-agent.service"


def settings(unit=UNIT):
    """(section, key) -> value; none is there twice."""
    found, section = {}, ""
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, value = line.split("=", 1)
            assert (section, key) not in found, line
            found[section, key] = value
    return found


def command(program, variables):
    """The words of ExecStart as systemd makes them."""
    words = shlex.split(settings()["Service", "ExecStart"])
    return [program, *(re.sub(r"\$\{(\w+)\}", lambda name: variables[name[1]], word) for word in words[1:])]


class unit(bench_case):
    def expect(self, section, **wanted):
        for key, value in wanted.items():
            self.assertEqual(settings().get((section, key)), value, key)

    def test_ends_all_that_it_started_and_gives_workers_the_time_to_hand_back(self):
        self.expect("Service", KillMode="control-group", KillSignal="SIGTERM", OOMPolicy="continue")
        self.assertGreater(int(settings()["Service", "TimeoutStopSec"]), 30)  # cluster.leave_grace_s

    def test_tries_again_what_trying_again_may_help(self):
        self.expect("Service", Restart="on-failure", RestartPreventExitStatus="2")
        self.expect("Unit", StartLimitIntervalSec="0")

    def test_has_its_token_from_a_credential_and_from_no_argument_or_variable(self):
        self.expect("Service", LoadCredential="token:/etc/dlrun/token", EnvironmentFile="/etc/dlrun/agent.env")
        self.assertNotIn("dlrun-token", UNIT.read_text())
        self.assertNotIn("TOKEN", (UNIT.parent / "agent.env").read_text())

    def test_has_no_rights_and_keeps_what_the_program_needs(self):
        self.expect("Service", DynamicUser="yes", NoNewPrivileges="yes", ProtectSystem="strict", CapabilityBoundingSet="")
        for breaks in ("MemoryDenyWriteExecute", "ProcSubset", "PrivateNetwork", "PrivateUsers"):
            self.assertNotIn(("Service", breaks), settings())
        families = settings()["Service", "RestrictAddressFamilies"].split()
        self.assertEqual(sorted(families), ["AF_INET", "AF_NETLINK", "AF_UNIX"])

    def test_starts_dlrun_with_options_that_it_has(self):
        file = self.bench.folder / "token"
        file.write_text("none\n")
        file.chmod(0o440)  # as systemd shows a credential
        variables = {"DLRUN_JOIN": "127.0.0.1:1", "CREDENTIALS_DIRECTORY": str(self.bench.folder), "STATE_DIRECTORY": "/nowhere"}
        done = subprocess.run(command(self.program, variables), stdin=subprocess.DEVNULL, capture_output=True, text=True, env={})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there is no token of a job in it", done.stderr)

    def test_is_one_that_systemd_understands(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not here")
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, UNIT.name)
            copy.write_text(UNIT.read_text().replace("/usr/local/bin/dlrun", "/bin/true"))
            done = subprocess.run(["systemd-analyze", "verify", "--recursive-errors=no", str(copy)], capture_output=True, text=True)
        self.assertEqual([line for line in done.stderr.splitlines() if UNIT.name in line], [], done.stderr)


if __name__ == "__main__":
    main()
