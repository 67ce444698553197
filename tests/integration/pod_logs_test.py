"""What the pods of a job print, for a collector of logs (docs/kubernetes.md): one JSON object a line, or text."""

import subprocess

import json_lines
from bench_case import main
from dlrun_job import wait_until
from pods_case import COMPLETED, INTERRUPTED, NAME, on_pods
from told_events import read_events

BAD_USAGE = 2
DETAILS = ("event", "role", "index", "incarnation", "monotonic_us", "step", "host", "reason", "text")


def printed(pod):
    """Its lines, as a collector gets them."""
    return json_lines.lines_of(pod.log.read_text())


def entries(pod):
    return [json_lines.entry_of(line) for line in printed(pod)]


class prints_json(on_pods):
    def expect_json(self, *pods):
        for one in pods:
            self.assertEqual(json_lines.problems_in(one.log.read_text()), [], one.name)
            self.assertTrue(printed(one), one.name)

    def test_in_every_line_of_a_job_that_trains(self):
        spec = self.small_job()
        self.start(spec)
        report = self.expect_complete(spec)
        self.expect_json(self.control, *self.hosts_pods)
        told = entries(self.control)
        steps = [one for one in told if one.get("type") == "progress"]
        self.assertTrue(steps)
        for one in steps:
            self.assertEqual([type(one[name]) for name in ("step", "steps", "loss", "accuracy")], [int, int, float, float], one)
        self.expect_events(told)
        [end] = [one for one in told if one.get("type") == "report"]
        self.assertEqual((end["status"], end["steps"], end["parameters_sha256"]),
                         ("completed", report["steps"], report["parameters_sha256"]))
        self.assertIn(f"parameters_sha256 {report['parameters_sha256']}\n", end["message"], "one text of several lines")
        for one in self.hosts_pods:
            self.assertIn("has joined the job", one.said())

    def expect_events(self, told):
        """With the fields of events.jsonl. There are more in the file: of the end, and of what is not for people."""
        kept = [{name: one.get(name) for name in DETAILS} for one in read_events(self.run_dir, None)]
        shown = [{name: one.get(name) for name in DETAILS} for one in told if one.get("type") == "event"]
        self.assertIn("host-joined", [one["event"] for one in shown])
        for one in shown:
            self.assertIn(one, kept)

    def test_of_a_control_pod_that_is_refused_its_job_and_says_why_last(self):
        text = self.manifests(self.small_job())
        self.cluster.apply(text.replace("durability.disk_quota=", "durability.disk_quta="))
        [control] = self.cluster.start(NAME)
        wait_until(lambda: control.exit_codes, "it ends")
        self.assertEqual(control.exit_codes[0], BAD_USAGE, control.said())
        self.expect_json(control)
        last = entries(control)[-1]
        self.assertEqual(last["level"], "error")
        self.assertIn("disk_quta", last["message"])

    def test_of_a_host_that_is_asked_to_end(self):
        self.start(self.unhurried_spec())
        self.wait_until_trains()
        going = self.hosts_pods[0]
        going.delete()
        self.assertEqual(going.exit_codes, [INTERRUPTED], going.said())
        self.expect_json(going, self.control)
        self.assertEqual(entries(going)[-1]["level"], "error")
        lost = [one for one in entries(self.control) if one.get("host") == f"{NAME}-hosts-0" and one.get("event") == "host-left"]
        self.assertTrue(lost, self.control.said())

    def test_unless_text_is_asked_for(self):
        spec = self.small_job()
        self.start(spec, "--log-format", "text")
        self.expect_complete(spec)
        for one in (self.control, *self.hosts_pods):
            self.assertEqual([line for line in entries(one) if line], [], one.name)

    def test_while_the_logs_of_roles_are_shown_as_ever(self):
        """`dlrun logs k8s://` reads them in the run folder."""
        self.start(self.unhurried_spec())
        self.wait_until_trains()
        told = {}
        for options in ((), ("--json",)):
            code, output, complaint = self.control.execute("/usr/local/bin/dlrun", "logs", f"/var/lib/dlrun/{NAME}", *options)
            self.assertEqual(code, COMPLETED, complaint)
            told[options] = output.splitlines()
        self.assertRegex(told[()][0], r"^\d{4}-\d\d-\d\dT\S+ (trace|debug|info|warning|error) \S+ inc=\d+ ")
        self.assertIsNone(json_lines.entry_of(told[()][0]))
        self.assertIn('"text":', told["--json",][0])


class refuses_options(on_pods):
    def test_in_the_format_that_is_asked_for(self):
        for options in (("--wrong",), ("--takes", "all"), ()):
            with self.subTest(options):
                done = subprocess.run([self.program, "agent", "--join", "127.0.0.1:1", "--log-format", "json", *options], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (BAD_USAGE, ""))
                [line] = done.stdout.splitlines()
                self.assertEqual((json_lines.problem_of(line), json_lines.entry_of(line)["level"]), ("", "error"))


if __name__ == "__main__":
    main()
