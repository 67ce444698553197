"""What a run shows to the tools of others: the same training with all of it, numbers that agree with the report."""

import contextlib
import json
import pathlib
import re
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import event_files
import small_data
from bench_case import main
from changed_runs import BAD_USAGE, LR, changed_runs, gone_back, set_options
from dlrun_job import all_run, expect, free_port, job_over, running_job, until_held, wait_until

EPOCHS = 12
LONG = 36  # epochs: the job is held now and then until a worker has come back
STEPS_PER_EPOCH = 63  # 2003 records in steps of 4 * 8
LOOPBACK = "127.0.0.1"
DOCUMENTATION = pathlib.Path(__file__).resolve().parents[2] / "docs"
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LISTENING = "0A"
LOG_KEYS = ["time", "level", "role", "index", "incarnation", "event", "text"]


def scrape(port, secured=None):
    """name -> {labels: value} of what is served, over TLS with that context, or None when nobody answers."""
    try:
        with urllib.request.urlopen(f"http{'s' if secured else ''}://{LOOPBACK}:{port}/metrics", timeout=5, context=secured) as answer:
            lines = answer.read().decode().splitlines()
    except (OSError, urllib.error.URLError):
        return None
    found = {}
    for line in lines:
        if sample := SAMPLE.match(line):
            found.setdefault(sample[1], {})[sample[2] or ""] = float(sample[3])
    return found


def listening_addresses(port):
    """The local addresses on which somebody listens at the port, as the kernel lists them."""
    rows = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as file:
            rows += [line.split() for line in file.readlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == LISTENING and int(row[1].split(":")[1], 16) == port]


class shown_run(changed_runs):
    def shown_spec(self, epochs=EPOCHS, **wanted):
        spec = self.durable_spec("every_step", epochs=epochs)
        spec["data"]["validation"] = small_data.write_images(self.bench.folder, "foreign", 501, seed=2)
        spec["train"]["evaluate_every"] = "1 epoch"
        spec["observability"] = wanted
        return spec

    def expect_same_training(self, report, epochs=EPOCHS):
        spec = self.shown_spec(epochs)
        del spec["observability"]
        reference = self.undisturbed(spec)
        for field in ("parameters_sha256", "train_loss", "train_accuracy", "evaluations", "samples_committed"):
            self.assertEqual(report[field], reference[field], field)


class by_default(shown_run):
    def test_nothing_is_shown_and_logs_are_text(self):
        with self.bench.start(self.durable_spec("off", epochs=1)) as job:
            job.expect_complete()
            self.assertFalse((job.run_dir / "tensorboard").exists())
            for log in (job.run_dir / "logs").glob("*.log"):
                self.assertNotIn("{\"time\"", log.read_text())


class probes(shown_run):
    def test_are_answered_where_that_is_asked_for(self):
        listen = f"{LOOPBACK}:{free_port()}"

        def probed(program, run_dir, arguments, output):
            return running_job(program, run_dir, [*arguments, "--probe-listen", listen], output)

        with self.bench.start(self.durable_spec("off"), kind=probed) as job:
            with job.held_from_step(1):
                for path in ("livez", "readyz"):
                    with urllib.request.urlopen(f"http://{listen}/{path}", timeout=5) as answer:
                        self.assertEqual((answer.status, answer.read()), (200, b"ok\n"))
            job.expect_complete()

    def test_at_no_other_place_and_for_no_job_that_goes_on_by_itself(self):
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.durable_spec("off"))
        for options, told in ((("--probe-listen", "localhost:1"), "--probe-listen: cannot listen at localhost:1 for probes: it is no IPv4 address"),
                              (("--probe-listen", f"{LOOPBACK}:1", "--detach"), "--detach excludes --probe-listen")):
            done = subprocess.run([self.program, "train", str(file), "--run-dir", str(self.bench.folder / "none"), *options], capture_output=True, text=True)
            self.assertEqual(done.returncode, BAD_USAGE, done.stderr)
            self.assertIn(told, done.stderr)
        self.assertFalse((self.bench.folder / "none").exists())


class metrics(shown_run):
    def wait_for(self, job, port, holds, what):
        """Waits until the metrics are as wanted. @returns them."""

        def look():
            found = scrape(port)
            if found and holds(found):
                return found
            if job.root.poll() is not None:
                raise job_over(f"the job ended before: {what}\n{job.output()}")
            return None

        return wait_until(look, what)

    def test_a_run_that_loses_a_worker_says_so_to_prometheus(self):
        until_held(self.expect_loss_told)

    def expect_loss_told(self):
        port = free_port()
        with self.bench.start(self.shown_spec(LONG, prometheus_port=port)) as job:
            with job.held_from_step(1, lambda status: all_run(status) and job.events("evaluated"), alive=True) as status:
                self.assertEqual(listening_addresses(port), ["0100007F"], "on 127.0.0.1 and nowhere else")
                found = self.wait_for(job, port, lambda one: one.get("dlrun_validation_step")
                                      and one["dlrun_step"][""] >= status["step"], "an evaluation and the step are shown")
                self.assertEqual(found["dlrun_steps_target"][""], LONG * STEPS_PER_EPOCH)
                self.assertGreater(found["dlrun_samples_total"][""], 0)
                for role in status["roles"]:
                    label = f'role="{role["role"]}",index="{role["index"]}"'
                    self.assertEqual(found["dlrun_role_up"][label], 1, label)
                self.assertIn('metric="accuracy"', found["dlrun_train_metric"])
                self.assertIn('metric="accuracy"', found["dlrun_validation_metric"])
                self.assertEqual(found["dlrun_recoveries_total"]['role="worker"'], 0)
                job.kill("worker", 0)
            with job.held_from_step(status["step"], lambda _: job.events("worker-resumed"), alive=True):
                found = self.wait_for(job, port, lambda one: one["dlrun_recoveries_total"]['role="worker"'], "a recovery")
                self.assertEqual(found["dlrun_role_restarts_total"]['role="worker",index="0"'], 1)
                self.assertEqual(found["dlrun_events_total"]['event="role-exited"'], 1)
                self.assertGreater(found["dlrun_recovery_seconds_sum"]['role="worker"'], 0)
            self.expect_same_training(job.expect_complete(), LONG)
            self.assertIsNone(scrape(port), "it goes with the run")

    def test_for_other_hosts_it_is_served_with_certificates_as_the_documentation_makes_them(self):
        commands = [line for line in (DOCUMENTATION / "observability.md").read_text().splitlines() if line.startswith("openssl req ")]
        self.assertEqual(len(commands), 2)
        for command in commands:
            subprocess.run(command.replace("10.0.0.1", LOOPBACK), shell=True, cwd=self.bench.folder, check=True, capture_output=True)
        files = {key: str(self.bench.folder / name) for key, name in (("certificate_file", "tls.crt"), ("key_file", "tls.key"), ("ca_file", "ca.crt"))}
        port = free_port()
        asking = ssl.create_default_context(cafile=files["ca_file"])
        with self.bench.start(self.shown_spec(prometheus_port=port, prometheus_tls={"address": LOOPBACK, **files})) as job:
            with job.held_from_step(1):
                self.assertIsNone(scrape(port))
                self.assertIsNone(scrape(port, asking), "who shows no certificate")
                asking.load_cert_chain(files["certificate_file"], files["key_file"])
                self.assertEqual(scrape(port, asking)["dlrun_steps_target"][""], EPOCHS * STEPS_PER_EPOCH)
            self.expect_same_training(job.expect_complete())

    def test_a_port_in_use_is_refused_before_anything_is_made(self):
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.shown_spec())
        with contextlib.closing(socket.socket()) as other:
            other.bind((LOOPBACK, 0))
            other.listen()
            port = other.getsockname()[1]
            before = sorted(self.bench.folder.iterdir())
            options = set_options(f"observability.prometheus_port={port}")
            answer = subprocess.run([self.program, "train", file, "--run-dir", self.bench.folder / "run", *options],
                                    capture_output=True, text=True, timeout=60)
            self.assertEqual(answer.returncode, BAD_USAGE, answer)
            for word in ("observability.prometheus_port", f"{LOOPBACK}:{port}", "Address already in use"):
                self.assertIn(word, answer.stderr)
            self.assertEqual(sorted(self.bench.folder.iterdir()), before, "something was left behind")
            tls = f"{{address: {LOOPBACK}, certificate_file: /nowhere/tls.crt, key_file: /nowhere/tls.key, ca_file: /nowhere/ca.crt}}"
            unsafe = set_options("observability.prometheus_port=1", f"observability.prometheus_tls={tls}")
            job = self.killed_run(self.shown_spec(), 10)
            self.expect_refused(job, unsafe, "observability.prometheus_tls.certificate_file", "/nowhere/tls.crt", "No such file", "name a PEM file")
            self.expect_refused(job, options, f"{LOOPBACK}:{port}", "Address already in use")
            job.resume()
            self.expect_same_training(job.expect_complete(may_redo=True))


class event_file(shown_run):
    def shown(self, job):
        """tag -> [(step, value)]; no tag shows a step twice."""
        series = event_files.series(job.run_dir / "tensorboard")
        for tag, points in series.items():
            steps = [step for step, _ in points]
            self.assertEqual(steps, sorted(set(steps)), tag)
        return series

    def expect_agrees(self, series, report):
        """The last points are the report's numbers; so is each evaluation that is shown."""
        end = {"train/epoch_loss": report["train_loss"], "train/accuracy": report["train_accuracy"],
               "validation/loss": report["validation"]["loss"], "validation/accuracy": report["validation"]["accuracy"]}
        for tag, value in end.items():
            self.assertEqual(series[tag][-1], (report["steps"], event_files.float32(value)), tag)
        told = {one["step"]: (one["loss"], one["metrics"]["accuracy"]) for one in report["evaluations"]}
        for place, tag in enumerate(("validation/loss", "validation/accuracy")):
            for step, value in series[tag]:
                self.assertEqual(value, event_files.float32(told[step][place]), f"{tag} at {step}")
            self.assertGreaterEqual(len(series[tag]), EPOCHS - 2, "one is lost with each that tells it, at most")
        self.assertTrue(series["train/loss"])
        self.assertEqual({value for _, value in series["train/lr"]}, {event_files.float32(0.02)})

    def test_an_undisturbed_run_is_shown_as_the_report_has_it(self):
        with self.bench.start(self.shown_spec(tensorboard=True)) as job:
            report = job.expect_complete()
            self.expect_same_training(report)
            series = self.shown(job)
            self.expect_agrees(series, report)
            self.assertEqual(len(series["validation/loss"]), EPOCHS)
            first = next(event_files.events(event_files.files(job.run_dir / "tensorboard")[0]))
            self.assertEqual(first["file_version"], "brain.Event:2")

    def test_a_run_that_dies_and_is_resumed_shows_each_step_once(self):
        job = self.killed_run(self.shown_spec(tensorboard=True), 4 * STEPS_PER_EPOCH)
        job.resume()
        with job.held_from_step(7 * STEPS_PER_EPOCH):
            job.kill("ps_shard", 0)
        report = job.expect_complete(may_redo=True)
        self.expect_same_training(report)
        self.expect_agrees(self.shown(job), report)
        self.assertEqual(len(event_files.files(job.run_dir / "tensorboard")), 2)

    def test_a_stretch_that_is_undone_is_not_shown_any_more(self):
        job = self.killed_run(self.shown_spec(tensorboard=True), 5 * STEPS_PER_EPOCH)
        before = self.shown(job)["train/lr"]
        job.resume([f"{LR}=0.005"], ["--from", str(2 * STEPS_PER_EPOCH)])
        report = job.expect_complete(may_redo=True)
        version, = gone_back(report)
        self.assertLessEqual(version, 2 * STEPS_PER_EPOCH)
        rates = self.shown(job)["train/lr"]
        self.assertEqual([point for point in rates if point[0] <= version], [point for point in before if point[0] <= version])
        after = {value for step, value in rates if step > version}
        self.assertEqual(after, {event_files.float32(0.005)})

    def test_a_run_goes_on_when_they_cannot_be_written(self):
        job = self.killed_run(self.shown_spec(), 10)
        (job.run_dir / "tensorboard").write_text("a file")
        job.resume(["observability.tensorboard=true"])
        self.expect_same_training(job.expect_complete(may_redo=True))
        told = job.events("tensorboard-failed")
        self.assertEqual(len(told), 1, "once")
        self.assertIn(str(job.run_dir / "tensorboard"), told[0]["text"])
        self.assertIn("tensorboard-failed", job.output())


class events_in_numbers(shown_run):
    def test_what_the_text_says_is_there_for_programs(self):
        with self.bench.start(self.shown_spec(LONG)) as job:
            with job.held_from_step(1, all_run):
                job.kill("worker", 1)
            with job.held_from_step(1, lambda _: job.events("worker-resumed")):
                pass
            report = job.expect_complete()
            recovery = report["recoveries"][0]
            exited, = job.events("role-exited")
            self.assertAlmostEqual(exited["after_ms"], recovery["detected_ms"], places=3)
            resumed = job.events("worker-resumed")[0]
            self.assertAlmostEqual(resumed["after_ms"], recovery["resumed_ms"], places=3)
            told = [(event["step"], event["values"]) for event in job.events("evaluated")]
            wanted = [(one["step"], {"loss": one["loss"], **one["metrics"]}) for one in report["evaluations"]]
            self.assertEqual(told, wanted)


class logs_in_json(shown_run):
    def lines_of(self, job):
        for log in sorted((job.run_dir / "logs").glob("*.log")):
            for line in log.read_text().splitlines():
                yield log.stem, line

    def test_each_line_is_an_object_and_dlrun_reads_it(self):
        for placement in ("processes", "threads"):
            with self.subTest(placement):
                spec = self.shown_spec(log_format="json")
                spec["cluster"]["placement"] = placement
                with self.bench.start(spec) as job:
                    self.expect_same_training(job.expect_complete())
                    self.expect_objects(job)
                    self.expect_readable(job)

    def expect_objects(self, job):
        roles = set()
        for name, text in self.lines_of(job):
            line = json.loads(text)
            self.assertEqual(list(line), LOG_KEYS, text)
            self.assertEqual(f"{line['role']}-{line['index']}", name)
            roles.add(name)
        self.assertLessEqual({"agent-0", "coordinator-0", "data_dispatcher-0", "ps_shard-0", "worker-0"}, roles)

    def expect_readable(self, job):
        count = len(list(self.lines_of(job)))
        code, said, complaint = job.ask("logs", "--json")
        self.assertEqual(code, 0, complaint)
        lines = [json.loads(line) for line in said.splitlines()]
        self.assertEqual(len(lines), count)
        self.assertEqual(list(lines[0]), LOG_KEYS)
        code, said, complaint = job.ask("logs", "--role", "agent")
        self.assertEqual(code, 0, complaint)
        expect(said, "the agent has logged something")
        for line in said.splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[\d:.]+ \w+ agent-0 inc=1 ")


if __name__ == "__main__":
    main()
