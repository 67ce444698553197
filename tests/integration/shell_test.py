"""What a shell and a terminal do to a program: redirections, closed streams, links, umask, names, signals, widths."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import termios

import dlrun_job
import small_data
from bench_case import bench_case, main
from shell_case import PATIENCE_S, shell_case, table_spec

ENDLESS = 100000
INTERRUPTED = 130
WRITE_ERROR = "dlrun: cannot write the output: "
VERBS = ("status run", "status run --json", "evaluate run", "evaluate run --json", "predict run --input t.csv",
         "predict run --input t.csv --format json", "export run --output w.st", "export run --output w.st --json",
         "logs run", "logs run --json", "logs run --lines 3", "attach run", "attach run --json", "events run2", "explain run", "explain run --json",
         "validate job.yaml", "validate job.yaml --json", "version", "version --json", "completion bash", "init --list", "init mlp new.yaml", "resume run",
         "resume run --json", "train job.yaml --run-dir again", "train job.yaml --run-dir again --json", "--help",
         "train --help")


class lost_output(shell_case):
    def expect_failure_of_each_verb(self, run, why):
        """`run(verb)` with an output that fails, for each verb, with nothing else in its way."""
        self.trained()
        shutil.copytree(self.folder / "run", self.folder / "run2")
        (self.folder / "run2" / "events.jsonl").write_text('{"event":"rewind","time":"now","text":"back"}\n')
        for verb in VERBS:
            shutil.rmtree(self.folder / "again", ignore_errors=True)
            for made in ("new.yaml", "train.csv"):
                (self.folder / made).unlink(missing_ok=True)
            with self.subTest(verb):
                answer = run(verb)
                self.assertEqual(answer.returncode, 1, answer)
                self.assertEqual(answer.stderr.decode().splitlines()[-1], WRITE_ERROR + why)

    def test_a_full_disk_is_no_success(self):
        with open("/dev/full", "wb") as full:
            self.expect_failure_of_each_verb(lambda verb: self.dlrun(*verb.split(), stdout=full),
                                             "No space left on device")

    def test_a_closed_stdout_is_no_success(self):
        self.expect_failure_of_each_verb(lambda verb: self.shell(f"$DLRUN {verb} >&-"), "Bad file descriptor")

    def test_a_reader_that_has_gone_ends_a_verb_as_it_ends_others(self):
        self.trained()
        answer = self.shell("$DLRUN completion bash | true; exit ${PIPESTATUS[0]}")
        self.assertIn(answer.returncode, (0, 128 + signal.SIGPIPE), "0: it was quicker than its reader")
        answer = self.shell("trap '' PIPE; exec 9> >(exec true); wait $!; $DLRUN predict run --input t.csv >&9")
        self.assertEqual((answer.returncode, answer.stderr.decode()), (1, WRITE_ERROR + "Broken pipe\n"))

    def test_a_training_goes_on_without_its_reader(self):
        answer = self.shell("exec 9> >(exec true); wait $!; $DLRUN train job.yaml --run-dir run >&9")
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        self.assertEqual(json.loads((self.folder / "run" / "report.json").read_text())["status"], "completed")

    def test_a_failure_keeps_its_code_and_its_reason(self):
        with open("/dev/full", "wb") as full:
            answer = self.dlrun("status", "nowhere", stdout=full)
        self.assertEqual(answer.returncode, 2)
        self.assertIn(b"nowhere", answer.stderr)


class streams(shell_case):
    def test_closed_ones_are_the_numbers_of_nothing_else(self):
        self.trained()
        self.assertEqual(self.shell("$DLRUN train job.yaml --run-dir closed <&- >&- 2>&-").returncode, 1)
        report = json.loads((self.folder / "closed" / "report.json").read_text())
        self.assertEqual(report["status"], "completed")
        self.assertEqual(report["parameters_sha256"],
                         json.loads((self.folder / "run" / "report.json").read_text())["parameters_sha256"])
        self.assertEqual(self.shell("$DLRUN predict run --input t.csv --output p.csv <&- >&- 2>&-").returncode, 0)
        self.assertEqual((self.folder / "p.csv").read_text().splitlines()[0], "record,class,output0,output1")

    def test_of_a_run_are_what_they_were_for_as_long_as_it_runs(self):
        spec = small_data.write_spec(self.folder / "endless.yaml", self.spec(epochs=ENDLESS))
        root = subprocess.Popen(["/bin/bash", "-c", f'exec "{os.path.realpath(self.program)}" train {spec} --run-dir run '
                                 "<&- >&- 2>&-"], cwd=self.folder)
        try:
            def workers():
                answer = self.dlrun("status", "run", "--json")
                roles = json.loads(answer.stdout)["roles"] if answer.returncode == 0 else []
                return [role for role in roles if role["state"] == "training"]
            dlrun_job.wait_until(workers, "workers train")
            for number in (0, 1, 2):
                self.assertEqual(os.readlink(f"/proc/{root.pid}/fd/{number}"), "/dev/null")
            root.send_signal(signal.SIGTERM)
            self.assertEqual(root.wait(PATIENCE_S), INTERRUPTED)
        finally:
            root.kill()
            root.wait()

    def test_the_reason_of_a_failure_is_the_last_line_of_both(self):
        for command in ("(ulimit -n 16; $DLRUN train job.yaml --run-dir run)", "$DLRUN events nowhere",
                        "(ulimit -n 12; $DLRUN train job.yaml --run-dir run2 --set durability.log=auto)"):
            with self.subTest(command):
                answer = self.shell(f"{command} >both 2>&1")
                self.assertIn(answer.returncode, (1, 2))
                self.assertTrue((self.folder / "both").read_text().splitlines()[-1].startswith("dlrun: "), command)

    def test_few_descriptors_are_told_as_such(self):
        self.trained()
        for count in range(4, 34, 2):
            with self.subTest(count):
                shutil.rmtree(self.folder / "again", ignore_errors=True)
                answer = self.shell(f"ulimit -n {count}; $DLRUN train job.yaml --run-dir again")
                if answer.returncode == 0:
                    continue
                last = answer.stderr.decode(errors="replace").splitlines()[-1]
                self.assertEqual(answer.returncode, 1, answer)
                self.assertTrue(last.startswith("dlrun: "), last)
                self.assertIn("files open", last)


class where_output_goes(shell_case):
    def test_a_link_leads_there_and_stays(self):
        self.trained()
        os.symlink("real.st", self.folder / "link.st")
        os.symlink("real.csv", self.folder / "link.csv")
        for _ in range(2):
            self.assertEqual(self.dlrun("export", "run", "--output", "link.st").returncode, 0)
            self.assertEqual(self.dlrun("predict", "run", "--input", "t.csv", "--output", "link.csv").returncode, 0)
        for link in ("link.st", "link.csv"):
            self.assertTrue((self.folder / link).is_symlink())
            self.assertGreater((self.folder / link).stat().st_size, 0)

    def test_stdout_by_its_name_is_stdout(self):
        self.trained()
        expected = self.dlrun("predict", "run", "--input", "t.csv").stdout
        before = os.readlink("/dev/stdout")
        for redirection in ("| cat", "> file; cat file"):
            answer = self.shell(f"$DLRUN predict run --input t.csv --output /dev/stdout {redirection}")
            self.assertEqual((answer.stdout, answer.stderr), (expected, b""))
        self.assertEqual(os.readlink("/dev/stdout"), before)
        self.dlrun("export", "run", "--output", "w.st")
        answer = self.dlrun("export", "run", "--output", "/dev/stdout")
        self.assertEqual(answer.stdout, (self.folder / "w.st").read_bytes(), "what is told of it goes to stderr")
        self.assertIn(b"parameters_sha256", answer.stderr)

    def test_a_fifo_stays_one(self):
        self.trained()
        os.mkfifo(self.folder / "fifo")
        answer = self.shell("cat fifo > got & $DLRUN predict run --input t.csv --output fifo && wait && cat got")
        self.assertEqual(answer.stdout, self.dlrun("predict", "run", "--input", "t.csv").stdout)
        self.assertTrue(stat.S_ISFIFO(os.lstat(self.folder / "fifo").st_mode))

    def test_a_link_in_place_of_the_report_stays_when_the_run_is_resumed(self):
        with self.bench.start(self.spec(epochs=ENDLESS)) as job:
            job.wait_for_step(10)
            job.kill_everything()
            (self.folder / "elsewhere.json").write_text("of the start before")
            os.symlink(self.folder / "elsewhere.json", job.run_dir / "report.json")
            job.resume()
            job.wait_until_all_run()
            job.root.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            self.assertTrue((job.run_dir / "report.json").is_symlink())
            self.assertEqual(json.loads((self.folder / "elsewhere.json").read_text())["status"], "interrupted")

    def test_a_fifo_in_place_of_the_report_is_refused(self):
        with self.bench.start(self.spec(epochs=ENDLESS)) as job:
            job.wait_for_step(10)
            job.kill_everything()
            os.mkfifo(job.run_dir / "report.json")
            code, _, complaint = job.ask("resume")
            self.assertEqual(code, 2)
            self.assertIn("report.json' is no file", complaint)

    def test_the_umask_decides_who_may_read(self):
        for mask, forbidden in (("077", 0o077), ("027", 0o027)):
            answer = self.shell(f"umask {mask} && $DLRUN train job.yaml --run-dir run{mask} && "
                                f"$DLRUN export run{mask} --output w{mask}.st && "
                                f"$DLRUN predict run{mask} --input t.csv --output p{mask}.csv && $DLRUN init mlp i{mask}.yaml")
            self.assertEqual(answer.returncode, 0, answer)
            made = [path for part in ("run", "w", "p", "i") for path in self.folder.glob(f"{part}{mask}*")]
            made += (self.folder / f"run{mask}").rglob("*")
            self.assertGreater(len(made), 20)
            for path in made:
                self.assertEqual(path.stat().st_mode & forbidden, 0, path)
        self.assertEqual(self.shell("umask 002 && $DLRUN export run077 --output open.st").returncode, 0)
        self.assertEqual((self.folder / "open.st").stat().st_mode & 0o777, 0o664)


class inputs_that_are_no_files(shell_case):
    def expect_refusal(self, *words):
        answer = self.dlrun(*words, timeout=20)
        self.assertEqual(answer.returncode, 2, answer)
        self.assertRegex(answer.stderr.decode(), "not a (regular )?file|is a folder|Is a directory")

    def test_are_refused_and_not_waited_for(self):
        self.trained()
        os.mkfifo(self.folder / "fifo")
        (self.folder / "folder").mkdir()
        for thing in ("fifo", "folder", "/dev/zero"):
            with self.subTest(thing):
                self.expect_refusal("train", thing, "--run-dir", "no")
                self.expect_refusal("validate", "job.yaml", "--set", f"data.train.records={thing}")
                self.expect_refusal("train", "job.yaml", "--set", f"train.init_from={thing}", "--run-dir", "no")
                self.expect_refusal("predict", "run", "--input", thing)
                if thing != "folder":
                    self.expect_refusal("predict", thing, "--spec", "job.yaml", "--input", "t.csv")
                self.assertFalse((self.folder / "no").exists())


class names(shell_case):
    BYTES = b"lat\xe9"

    def test_of_run_folders_and_outputs_need_not_be_utf8(self):
        answer = self.dlrun("train", "job.yaml", "--run-dir", os.fsdecode(self.BYTES))
        self.assertEqual((answer.returncode, answer.stderr), (0, b""), answer)
        output = os.fsdecode(self.BYTES + b".st")
        answer = self.dlrun("export", os.fsdecode(self.BYTES), "--output", output, "--json")
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        self.assertEqual(json.loads(answer.stdout)["file"], "lat\ufffd.st")
        self.assertTrue((self.folder / output).exists())
        self.assertEqual(self.dlrun("predict", os.fsdecode(self.BYTES), "--input", "t.csv", "--output",
                                    os.fsdecode(self.BYTES + b".csv")).returncode, 0)

    def test_of_data_are_utf8_or_refused_before_anything_is_made(self):
        folder = os.fsdecode(os.fsencode(self.folder) + b"/" + self.BYTES)
        os.mkdir(folder)
        for name in ("job.yaml", "t.csv"):
            shutil.copy(self.folder / name, folder)
        answer = self.dlrun("train", "job.yaml", "--run-dir", "run", cwd=folder)
        self.assertEqual(answer.returncode, 2, answer)
        self.assertIn(b"UTF-8", answer.stderr)
        self.assertNotIn(b"protobuf", answer.stderr)
        self.assertEqual(sorted(os.listdir(folder)), ["job.yaml", "t.csv"])


class numbers(shell_case):
    def test_are_decimal(self):
        self.trained()
        options = (("evaluate", "run", "--threads"), ("evaluate", "run", "--step"), ("export", "run", "--step"),
                   ("logs", "run", "--lines"), ("resume", "run", "--from"), ("predict", "run", "--input", "t.csv", "--threads"))
        for words in options:
            for number in ("0x1", "01", "1e0", " 1", "+1", "1 ", "1.0", "-1", "", "٣", "99999999999999999999999"):
                with self.subTest((*words, number)):
                    answer = self.dlrun(*words, number)
                    self.assertEqual(answer.returncode, 2, answer)
                    self.assertNotEqual(answer.stderr, b"")
        for key in ("train.epochs", "cluster.workers"):
            for number in ("0x1", "01", "1e0", "+1", "1.0"):
                with self.subTest((key, number)):
                    self.assertEqual(self.dlrun("validate", "job.yaml", "--set", f"{key}={number}").returncode, 2)


    def options_that_are_numbers(self):
        """Of all verbs, as their help has them: verb, option, and its range, or ""."""
        verbs = re.findall(r"^  (\w+) ", self.dlrun("--help").stdout.decode().partition("Subcommands:")[2], re.M)
        for verb in verbs:
            for option, told in re.findall(r"^ +(--[\w-]+) UINT(:from \d+ to \d+)?", self.dlrun(verb, "--help").stdout.decode(), re.M):
                yield verb, option, told[1:]

    def test_of_all_options_are_refused_with_what_is_allowed(self):
        options = list(self.options_that_are_numbers())
        self.assertIn(("evaluate", "--threads", "from 1 to 4096"), options)
        self.assertGreater(len(options), 20, options)
        for verb, option, told in options:
            for number in ("010", "99999999999999999999") + (("0",) if told.startswith("from 1 ") else ()):
                with self.subTest((verb, option, number)):
                    answer = self.dlrun(verb, option, number)
                    self.assertEqual(answer.returncode, 2, answer)
                    said = answer.stderr.decode().splitlines()[0]
                    self.assertRegex(said, rf"^{option}: expected a whole number.*{told}.*, found '{number}'")
                    self.assertLess(len(said), 150)


class damaged_events(shell_case):
    def test_a_torn_line_is_neither_shown_to_programs_nor_written_on(self):
        with self.bench.start(self.spec(epochs=ENDLESS)) as job:
            job.wait_for_step(10)
            job.kill_everything()
            events = job.run_dir / "events.jsonl"
            events.write_text('{"event": 5, "text": []}\n\x1b[2J\0\n{"event":"rewind","time":"t","text":"back"}\n{"event":"to')
            code, shown, _ = job.ask("events")
            self.assertEqual(code, 0)
            self.assertNotIn("\x1b", shown)
            self.assertIn("t  rewind: back\n", shown)
            _, shown, _ = job.ask("events", "--json")
            self.assertEqual([json.loads(line)["event"] for line in shown.splitlines()], [5, "rewind"])
            code, shown, said = job.ask("explain")
            self.assertEqual((code, said), (0, ""))
            self.assertEqual(shown.splitlines()[0], "all roles run on one host, that of 'dlrun train': it was called without --hosts")
            explained = json.loads(job.ask("explain", "--json")[1])
            self.assertEqual((explained["hosts"], explained["roles"]), (False, []))
            job.resume()
            job.wait_until_all_run()
            job.kill("worker", 0)
            dlrun_job.wait_until(lambda: "role-exited" in events.read_text(), "its end is written down")
            written = events.read_bytes().decode().split("\n")[3:-1]
            self.assertIn("role-exited", [json.loads(line)["event"] for line in written])


class signals(bench_case):
    def start(self):
        job = self.bench.start(self.spec(epochs=ENDLESS))
        job.wait_until_all_run()
        return job

    def test_a_hangup_ends_the_job_in_order(self):
        with self.start() as job:
            for _ in range(3):  # the kernel and the shell may both tell of it
                job.root.send_signal(signal.SIGHUP)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            self.assertIn("SIGHUP", job.report()["reason"])
            self.assertEqual(job.report()["status"], "interrupted")
            job.expect_nothing_left()

    def test_a_run_that_is_resumed_ends_in_order_too(self):
        """RocksDB has threads of its own by then, which block no signal."""
        for which in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            with self.subTest(which), self.start() as job:
                job.kill_everything()
                job.resume()
                job.wait_until_all_run()
                job.root.send_signal(which)
                self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
                self.assertEqual(job.report()["status"], "interrupted")

    def test_signals_that_were_ignored_stay_ignored(self):
        ignored = (signal.SIGHUP, signal.SIGINT)
        before = [signal.signal(which, signal.SIG_IGN) for which in ignored]  # which a child inherits
        try:
            job = self.start()
        finally:
            for which, handler in zip(ignored, before):
                signal.signal(which, handler)
        with job:
            step = job.status()["step"]
            for which in (*ignored, signal.SIGINT):
                job.root.send_signal(which)
            job.wait_for_step(step + 50)
            job.root.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())

    def test_a_second_interrupt_ends_it_at_once(self):
        with self.start() as job:
            job.kill("coordinator", which=signal.SIGSTOP)  # so that no report can be written
            job.root.send_signal(signal.SIGINT)
            job.wait_for(lambda status: status["status"] == "stopping", "it stops")
            job.interrupt_again()
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            self.assertIn("a second signal ended it at once", job.output())
            job.expect_nothing_left()


class terminals(shell_case):
    """The master of a pseudo terminal, and what a job draws on it."""

    def draw(self, columns, environment, resize=None):
        """Trains on a terminal. @returns its output, when it has ended with 0."""
        variables = {name: value for name, value in os.environ.items() if name not in ("TERM", "NO_COLOR", "COLUMNS")}
        small_data.write_spec(self.folder / "job.yaml", table_spec(self.folder, epochs=400))
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        run = tempfile.mkdtemp(dir=self.folder)
        root = subprocess.Popen([os.path.realpath(self.program), "train", "job.yaml", "--run-dir", run], stdin=slave,
                                stdout=slave, stderr=slave, cwd=self.folder, env={**variables, **environment},
                                start_new_session=True)
        os.close(slave)
        drawn = b""
        try:
            while select.select([master], [], [], PATIENCE_S)[0]:
                try:
                    drawn += os.read(master, 65536)
                except OSError:  # EIO: nobody holds the other side
                    break
                if resize and b"step" in drawn:
                    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, resize, 0, 0))
            self.assertEqual(root.wait(PATIENCE_S), 0, drawn)
        finally:
            root.kill()
            root.wait()
            os.close(master)
        return drawn.decode()

    @staticmethod
    def bars(drawn):
        return [part for line in drawn.split("\n") for part in line.rstrip("\r").split("\r") if "step" in part
                and "steps" not in part]

    def test_that_can_do_nothing_get_plain_lines(self):
        for environment in ({"TERM": "dumb"}, {}, {"TERM": ""}):
            with self.subTest(environment):
                drawn = self.draw(80, environment)
                self.assertNotIn("\033", drawn)
                self.assertNotIn("\r", drawn.replace("\r\n", "\n"))
                self.assertTrue(re.search(r"^ +\d+\.\d s  step \d+/", drawn, re.MULTILINE), drawn)

    def test_get_no_escape_sequences(self):
        self.assertNotIn("\033", self.draw(80, {"TERM": "xterm", "NO_COLOR": "1"}))

    def test_of_30_columns_get_lines_that_fit(self):
        drawn = self.draw(30, {"TERM": "xterm"})
        self.assertNotEqual(self.bars(drawn), [])
        for bar in self.bars(drawn):
            self.assertLess(len(bar), 30, bar)

    def test_may_change_their_width(self):
        bars = self.bars(self.draw(120, {"TERM": "xterm"}, resize=25))
        self.assertLess(len(bars[-1]), 25)


class replaced_program(bench_case):
    def expect_restart_after(self, replace):
        """`replace(file)` of the program that runs."""
        copy = pathlib.Path(self.bench.folder) / "dlrun-copy"
        shutil.copy(self.program, copy)
        self.bench.program = copy
        with self.bench.start(self.spec(epochs=ENDLESS)) as job:
            job.program = os.path.realpath(self.program)  # which asks for the status
            status = job.wait_until_all_run()
            names = {pathlib.Path(f"/proc/{role['pid']}/comm").read_text().strip() for role in status["roles"]}
            self.assertEqual(names, {"dlrun-copy"}, "as ps shows it")
            replace(copy)
            [pid] = [role["pid"] for role in status["roles"] if (role["role"], role["index"]) == ("worker", 0)]
            os.kill(pid, signal.SIGKILL)
            job.wait_for(lambda status: any(role["role"] == "worker" and role["incarnation"] > 1
                                            and role["state"] == "training" for role in status["roles"]),
                         "the worker is there again")
            self.assertEqual(job.events("role-start-failed"), [])
            job.root.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())

    def test_a_role_that_dies_is_started_from_what_runs_when_its_file_is_gone(self):
        self.expect_restart_after(os.unlink)

    def test_a_role_that_dies_is_started_from_what_runs_when_another_has_its_name(self):
        def put_another(file):
            file.unlink()
            shutil.copy("/bin/false", file)
        self.expect_restart_after(put_another)


if __name__ == "__main__":
    main()
