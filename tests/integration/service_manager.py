"""What systemd does with deploy/bare-metal/dlrun-job@.service, for tests: its settings, and the command again and again."""

import pathlib
import subprocess

from dlrun_job import PATIENCE_S, running_job

BARE_METAL = pathlib.Path(__file__).resolve().parents[2] / "deploy/bare-metal"
AGENT_UNIT, JOB_UNIT = BARE_METAL / "dlrun-agent.service", BARE_METAL / "dlrun-job@.service"


def settings(unit):
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


def is_started_again(exit_code, unit=JOB_UNIT):
    """Whether a service is that has ended so (negative: by that signal), as Restart=on-failure wants."""
    told = settings(unit)
    assert told["Service", "Restart"] == "on-failure"
    unwanted = f"{told.get(('Service', 'SuccessExitStatus'), '')} {told['Service', 'RestartPreventExitStatus']}".split()
    return exit_code != 0 and str(exit_code) not in unwanted


class serviced_job(running_job):
    """`dlrun train --or-resume`, whose root is the main process of a service."""

    def __init__(self, program, run_dir, arguments, output_file=None, within=()):
        self.own_command = [*arguments, "--or-resume"]
        super().__init__(program, run_dir, self.own_command, output_file, within)

    def call(self, *options):
        """The same command beside whatever runs. @returns exit code, output, complaints"""
        done = subprocess.run([*self.within, self.program, *self.own_command, *options], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def begin_own(self):
        """The same command, whatever went on with the run meanwhile."""
        self.arguments = self.own_command
        self.begin()

    def serve(self):
        """Waits for its end. @returns the exit code, if the service has ended with it; None: it was started again"""
        code = self.wait_end()
        if not is_started_again(code):
            return code
        self.begin_own()
        return None

    def kill_root(self):
        self.root.kill()
        self.root.wait()
