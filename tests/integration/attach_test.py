"""`dlrun attach`: what a run shows from now on, to anybody, until it ends; and never a disturbance of it."""

import shutil
import signal
import subprocess

import small_data
from bench_case import bench_case, main
from detached_jobs import attachment, detached_job, wait_for_absent_host, write_absent_hosts
from dlrun_job import PATIENCE_S, all_run, running_job, until_held, wait_until

ENDLESS = 100000
EPOCHS = 12
STEP = 20
FAILED, BAD_USAGE, LEFT_OUT, INTERRUPTED = 1, 2, 3, 130
KINDS = (running_job, detached_job)


class attach_case(bench_case):
    def durable_spec(self, epochs=ENDLESS, **options):
        return {**self.spec(epochs=epochs, **options), "durability": {"log": "every_step"}}

    def attach(self, job, *options):
        return self.enterContext(attachment(job, *options))

    def expect_ended(self, one, code, last=""):
        """With the exit code, and with `last` in the last line of what it complains of."""
        self.assertEqual(one.wait(), code, one.complaints())
        self.assertIn(last, (one.complaints().splitlines() or [""])[-1])


class shows(attach_case):
    def test_what_happens_from_now_on_to_all_whoever_started_the_job(self):
        for kind in KINDS:
            with self.subTest(kind.__name__):
                until_held(lambda kind=kind: self.expect_shown(kind))

    def expect_shown(self, kind):
        with self.bench.start(self.durable_spec(EPOCHS), kind=kind) as job:
            with job.held_from_step(STEP, all_run, alive=True) as status:
                job.kill("worker", 0)
                job.wait_for_exits(1)
                people, program = self.attach(job), self.attach(job, "--json")
                people.wait_for("  step ")
                program.wait_for('"progress"')
                job.kill("worker", 1)
                people.wait_for("role-exited: worker 1")
                program.wait_for("role-exited")
            report = job.expect_complete()
            for one in (people, program):
                self.expect_ended(one, 0)
        self.assertNotIn("role-exited: worker 0", people.output(), "that was before")
        self.assertIn("Ctrl-C detaches", people.complaints())
        self.assertIn(f"parameters_sha256 {report['parameters_sha256']}\n", people.output())
        self.expect_lines(program.lines(), status, report)
        self.assertEqual(program.complaints(), "")

    def expect_lines(self, lines, status, report):
        progress = [line for line in lines if line["type"] == "progress"]
        self.assertGreaterEqual(progress[0]["step"], status["step"])
        self.assertEqual(progress[0]["steps"], status["steps"])
        for key in ("loss", "epoch", "epoch_loss", "epoch_accuracy"):
            self.assertIsNotNone(progress[0][key])
        self.assertLess(progress[0]["seconds"], PATIENCE_S)
        exits = [line for line in lines if line.get("event") == "role-exited"]
        self.assertEqual([(line["role"], line["index"]) for line in exits], [("worker", 1)])
        self.assertIn("after_ms", exits[0])
        self.assertGreater(exits[0]["seconds"], progress[0]["seconds"])
        self.assertEqual((lines[-1]["type"], lines[-1]["report"]), ("report", report))

    def test_a_run_that_is_over_by_its_end(self):
        with self.bench.start(self.durable_spec(1)) as job:
            report = job.expect_complete()
        for options, shown in (((), "completed: "), (("--json",), '{"type":"report",')):
            code, output, complaint = job.ask("attach", *options)
            self.assertEqual((code, complaint), (0, ""))
            self.assertTrue(output.startswith(shown), output)
            self.assertIn(report["parameters_sha256"], output)


class detaches(attach_case):
    def test_on_an_interrupt_and_the_job_goes_on(self):
        with self.bench.start(self.durable_spec()) as job:
            job.wait_until_all_run()
            for options in ((), ("--json",)):
                for which in (signal.SIGINT, signal.SIGTERM):
                    one = self.attach(job, *options)
                    one.wait_for("step")
                    self.assertEqual(one.interrupt(which), INTERRUPTED)
                    self.assertIn("detached; the job keeps going", one.complaints().splitlines()[-1])
                    self.assertIn(f"dlrun attach {job.run_dir}", one.complaints())
            step = job.status()["step"]
            job.wait_for_step(step + 10)
            self.assertEqual(job.troubles(), [])

    def test_also_from_a_root_that_does_not_answer(self):
        with self.bench.start(self.durable_spec()) as job:
            job.wait_until_all_run()
            one = self.attach(job)
            one.wait_for("step")
            job.send_signal(job.root.pid, signal.SIGSTOP)
            silent = self.attach(job)
            wait_until(lambda: "does not answer; waiting for it" in silent.complaints(), "it says so")
            self.assertEqual(one.interrupt(), INTERRUPTED)
            job.send_signal(job.root.pid, signal.SIGCONT)
            wait_until(lambda: "answers again" in silent.complaints(), "it says so")
            silent.wait_for("step")
            self.assertEqual(silent.interrupt(), INTERRUPTED)
            job.wait_for_step(job.status()["step"] + 10)

    def test_while_the_job_has_not_begun(self):
        absent = write_absent_hosts(self.bench.folder / "hosts.yaml", self.bench.folder)
        run_dir = self.bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), self.durable_spec())
        with running_job(self.program, run_dir, ["train", str(file), "--run-dir", str(run_dir), "--hosts", str(absent)]) as job:
            wait_for_absent_host(run_dir)
            one = self.attach(job)
            with self.assertRaises(subprocess.TimeoutExpired):
                one.process.wait(1)
            one.wait_until_it_handles(signal.SIGINT)
            self.assertEqual(one.interrupt(), INTERRUPTED)
            job.root.send_signal(signal.SIGINT)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())


class ends_as_the_job(attach_case):
    def expect_both(self, job, end, code):
        """Who is attached when `end()` is called and who comes later see the same: its end, and the reason."""
        one = self.attach(job)
        one.wait_for("step")
        end()
        self.assertEqual(job.wait_end(), code, job.output())
        reason = job.report()["reason"]
        self.assertNotEqual(reason, "")
        for shown in (one, self.attach(job)):
            self.expect_ended(shown, code, reason)
            self.assertIn(f"report {job.run_dir}/report.json\n", shown.output())

    def test_when_it_is_stopped(self):
        with self.bench.start(self.durable_spec()) as job:
            job.wait_until_all_run()
            self.expect_both(job, lambda: self.assertEqual(job.ask("stop")[0], 0), INTERRUPTED)

    def test_when_it_fails(self):
        with self.bench.start({**self.durable_spec(), "durability": {"log": "off"}}) as job:
            job.wait_until_all_run()
            self.expect_both(job, lambda: job.kill("ps_shard"), FAILED)

    def test_when_records_were_left_out(self):
        with self.bench.start(self.durable_spec(EPOCHS), kind=detached_job) as job:
            job.kill_everything_at_step(STEP)
            job.resume(options=("--skip", "0:1"))
            one = self.attach(job)
            self.assertEqual(job.wait_end(), LEFT_OUT, job.output())
            self.expect_ended(one, LEFT_OUT)
            self.expect_ended(self.attach(job), LEFT_OUT)

    def test_when_its_root_is_killed_with_the_way_out(self):
        with self.bench.start(self.durable_spec()) as job:
            job.wait_until_all_run()
            one = self.attach(job)
            one.wait_for("step")
            job.kill_everything()
            way_out = f"'dlrun resume {job.run_dir}' goes on"
            self.expect_ended(one, FAILED, way_out)
            self.expect_ended(self.attach(job), FAILED, way_out)
            (job.run_dir / "agent.json").unlink()
            self.expect_ended(self.attach(job), BAD_USAGE, way_out)

    def test_not_where_there_is_no_run(self):
        with self.bench.start(self.durable_spec(1)) as job:
            job.expect_complete()
            shutil.rmtree(job.run_dir)
            self.expect_ended(self.attach(job), BAD_USAGE, "is not the folder of a run")


if __name__ == "__main__":
    main()
