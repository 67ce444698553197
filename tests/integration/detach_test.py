"""`train --detach` and `resume --detach`: what is refused is told as ever; what has begun needs nobody any more."""

import json
import os
import pathlib
import pty
import signal
import subprocess

import small_data
from bench_case import bench_case, main
from detached_jobs import (adopt_orphans, adopted_process, attachment, detached_job, wait_for_absent_host,
                           write_absent_hosts)
from dlrun_job import PATIENCE_S, all_run, running_job, stat_fields, wait_until
from hosts_case import on_several_hosts

ENDLESS = 100000
EPOCHS = 12
STEP = 20
BAD_USAGE, FAILED, INTERRUPTED = 2, 1, 130


class detach_case(bench_case):
    def durable_spec(self, epochs=ENDLESS, **options):
        return {**self.spec(epochs=epochs, **options), "durability": {"log": "every_step"}}

    def start(self, epochs=ENDLESS, **options):
        return self.enterContext(self.bench.start(self.durable_spec(epochs, **options), kind=detached_job))

    def dlrun(self, *words):
        """@returns exit code, output, complaints."""
        answer = subprocess.run([self.bench.program, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=PATIENCE_S, cwd=self.bench.folder)
        return answer.returncode, answer.stdout, answer.stderr


class keeps_going(detach_case):
    def expect_without_terminal(self, root, run_dir):
        fields = stat_fields(root.pid)
        self.assertEqual(fields["session"], root.pid)
        self.assertEqual(fields["terminal"], 0)
        self.assertEqual(os.readlink(f"/proc/{root.pid}/fd/0"), "/dev/null")
        for stream in (1, 2):
            self.assertEqual(os.readlink(f"/proc/{root.pid}/fd/{stream}"), str(run_dir / "logs" / "root.log"))

    def test_when_its_terminal_is_closed(self):
        adopt_orphans()
        run_dir = self.bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), self.durable_spec())
        script = '"$0" train "$1" --run-dir "$2" --detach; echo "ended with $?"; cat'
        shell, terminal = pty.fork()
        if shell == 0:
            os.execv("/bin/bash", ["bash", "-c", script, self.bench.program, str(file), str(run_dir)])
        said = b""
        while b"ended with" not in said:
            said += os.read(terminal, 4096)
        self.assertIn(b"ended with 0", said, said)
        root = adopted_process(json.loads((run_dir / "agent.json").read_text())["pid"])
        job = self.enterContext(found_job(self.bench.program, run_dir, root))
        os.close(terminal)  # the kernel sends SIGHUP to all in front of it
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1]), -signal.SIGHUP)
        job.wait_until_all_run()
        self.expect_without_terminal(root, run_dir)
        root.send_signal(signal.SIGHUP)
        job.wait_for_step(job.status()["step"] + STEP)
        self.assertEqual(job.ask("stop"), (0, "stopping\n", ""))
        self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
        self.assertEqual(job.report()["reason"], "stopped by 'dlrun stop'")
        job.expect_nothing_left()

    def test_to_its_end_with_the_bits_of_any_other_run(self):
        for placement in ("processes", "threads"):
            with self.subTest(placement):
                job = self.start(EPOCHS, placement=placement)
                report = job.expect_complete()
                self.assertEqual(report["parameters_sha256"],
                                 self.undisturbed(self.durable_spec(EPOCHS))["parameters_sha256"])
                self.assertIn(f"parameters_sha256 {report['parameters_sha256']}\n", job.output())
                self.assertNotIn("parameters_sha256", job.command.stdout)

    def test_until_it_has_a_signal_and_when_it_is_resumed(self):
        job = self.start(EPOCHS)
        with job.held_from_step(STEP, all_run):
            job.root.send_signal(signal.SIGTERM)
            job.wait_for(lambda status: status["status"] == "stopping", "the signal is heard before the job is over")
        self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
        job.expect_nothing_left()
        job.resume()
        report = job.expect_complete(may_redo=True)
        self.assertEqual(report["parameters_sha256"], self.undisturbed(self.durable_spec(EPOCHS))["parameters_sha256"])
        self.assertEqual(job.output().count("interrupted by a signal"), 1, "the log goes on")
        code, said, complaint = self.dlrun("resume", job.run_dir, "--detach")
        self.assertEqual((code, complaint), (0, ""))
        self.assertIn("is completed", said)

    def test_and_its_command_says_where_it_is(self):
        run_dir = self.bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), self.spec(epochs=ENDLESS))
        adopt_orphans()
        code, said, complaint = self.dlrun("train", file, "--run-dir", run_dir, "--detach", "--json")
        self.assertEqual((code, complaint), (0, ""))
        durability, detached = map(json.loads, said.splitlines())
        self.assertEqual(durability["type"], "durability", "as without --detach")
        self.assertEqual((detached["type"], detached["run_dir"]), ("detached", str(run_dir)))
        job = self.enterContext(found_job(self.bench.program, run_dir, adopted_process(detached["pid"])))
        wait_until(lambda: '"progress"' in job.output(), "progress is told")
        self.assertEqual(job.ask("stop")[0], 0)
        self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
        lines = [json.loads(line) for line in job.output().splitlines() if line.startswith("{")]
        self.assertEqual((lines[0]["type"], lines[-1]["type"]), ("progress", "report"))


class has_not_begun(detach_case):
    def test_and_says_what_it_says_without(self):
        spec = small_data.write_spec(self.bench.folder / "job.yaml", self.durable_spec())
        no_data = self.durable_spec()
        no_data["data"]["train"]["records"] = "nowhere"
        (self.bench.folder / "taken").mkdir()
        (self.bench.folder / "taken" / "thesis.tex").touch()
        used = self.start()
        for words, why in ((("train", "nowhere.yaml"), "nowhere.yaml"),
                           (("train", spec, "--set", "train.epoch=3"), "did you mean"),
                           (("train", small_data.write_spec(self.bench.folder / "bad.yaml", no_data)), "nowhere"),
                           (("train", spec, "--run-dir", "taken"), "is not empty"),
                           (("train", spec, "--run-dir", used.run_dir), "there is a run"),
                           (("train", spec, "--hosts", "nowhere.yaml"), "nowhere.yaml"),
                           (("resume", "nowhere"), "is not the folder of a run"),
                           (("resume", used.run_dir), "is in use by process")):
            with self.subTest(words):
                answer = self.dlrun(*words, "--detach")
                self.assertEqual(answer, self.dlrun(*words))
                self.assertEqual(answer[:2], (BAD_USAGE, ""))
                self.assertIn(why, answer[2])

    def begin_without_hosts(self):
        """A command that waits for hosts which never come. @returns it, its root and the run folder."""
        adopt_orphans()
        absent = write_absent_hosts(self.bench.folder / "hosts.yaml", self.bench.folder)
        run_dir = self.bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), self.durable_spec())
        command = subprocess.Popen([self.bench.program, "train", str(file), "--run-dir", str(run_dir), "--hosts", str(absent),
                                    "--set", "durability.replicas=1", "--detach"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(command.kill)
        wait_for_absent_host(run_dir)
        root = int((run_dir / "run.lock").read_text().split()[0])
        self.assertEqual(stat_fields(root)["parent"], command.pid)
        return command, root, run_dir

    def expect_gone(self, root, run_dir):
        wait_until(lambda: (stat_fields(root) or {"state": "Z"})["state"] == "Z", "the root has ended")
        self.assertFalse(run_dir.exists(), "as nothing began")

    def test_and_a_signal_to_its_command_ends_both(self):
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(which):
                command, root, run_dir = self.begin_without_hosts()
                command.send_signal(which)
                said, complaint = command.communicate(timeout=PATIENCE_S)
                self.assertEqual((command.returncode, said), (INTERRUPTED, ""))
                self.assertIn("interrupted", complaint.splitlines()[-1])
                self.expect_gone(root, run_dir)

    def test_and_ends_with_a_command_that_is_killed(self):
        command, root, run_dir = self.begin_without_hosts()
        command.kill()
        command.communicate(timeout=PATIENCE_S)
        self.assertEqual(adopted_process(root).wait(), INTERRUPTED)
        self.expect_gone(root, run_dir)

    def test_and_is_no_silence_when_it_is_killed(self):
        command, root, _ = self.begin_without_hosts()
        os.kill(root, signal.SIGKILL)
        said, complaint = command.communicate(timeout=PATIENCE_S)
        self.assertEqual((command.returncode, said), (FAILED, ""))
        self.assertIn(f"the root of the run (process {root}) was killed by signal 9", complaint)


class on_its_hosts(on_several_hosts):
    def start(self, spec, overrides=(), hosts=None):
        return self.hosts.start(self.bench, spec, hosts or self.list, overrides, kind=detached_job)

    def test_it_keeps_going_and_is_shown_where_the_root_is(self):
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run):
                one = self.enterContext(attachment(job))
                one.wait_for("step")
            report = self.expect_same_bits(job, spec)
            self.assertEqual(one.wait(), 0, one.complaints())
            self.assertIn(report["parameters_sha256"], one.output())

    def test_one_that_does_not_come_is_told_by_the_command(self):
        content = json.loads(self.list.read_text())
        content["program"] = "/nowhere/dlrun"
        changed = self.bench.folder / "changed.yaml"
        changed.write_text(json.dumps(content))
        run_dir = self.bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), self.small_job())
        answer = subprocess.run([*self.hosts.within(), self.bench.program, "train", str(file), "--run-dir", str(run_dir),
                                 "--hosts", str(changed), "--set", "durability.replicas=1", "--detach"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((answer.returncode, answer.stdout), (BAD_USAGE, ""))
        self.assertIn("/nowhere/dlrun", answer.stderr)
        self.assertFalse(run_dir.exists())
        self.expect_nobody_left()


class found_job(running_job):
    """A job that others have started."""

    def __init__(self, program, run_dir, root):
        self.root = root
        super().__init__(program, run_dir, (), pathlib.Path(run_dir) / "logs" / "root.log")

    def start_root(self, arguments):
        self.is_touched = True  # not to be begun again


if __name__ == "__main__":
    main()
