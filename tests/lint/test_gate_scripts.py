import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def load(name):
    """The module of a script that has no suffix."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class outcome_of_the_quickstart(unittest.TestCase):
    GOOD = {"status": "completed", "validation": {"accuracy": 0.88}, "samples_missing": 0, "samples_duplicated": 0,
            "recoveries": [{"role": "worker", "index": 1}]}

    def problems(self, **changes):
        return load("quickstart_demo").problems_in({**self.GOOD, **changes})

    def test_a_good_report_has_no_problems(self):
        self.assertEqual(self.problems(), [])

    def test_each_broken_promise_is_named(self):
        for changes, word in (({"status": "failed", "reason": "no data"}, "no data"),
                              ({"validation": {"accuracy": 0.8699}}, "0.8699"),
                              ({"validation": {"accuracy": None}}, "accuracy is None"),
                              ({"validation": None}, "accuracy is None"),
                              ({"samples_missing": 1}, "samples_missing is 1"),
                              ({"samples_duplicated": 2}, "samples_duplicated is 2"),
                              ({"recoveries": []}, "recovery of worker 1")):
            problems = self.problems(**changes)
            self.assertEqual(len(problems), 1, changes)
            self.assertIn(word, problems[0])

    def test_a_program_that_is_not_built_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([ROOT / "scripts/quickstart_demo", "--program", f"{folder}/dlrun", "--run-dir", f"{folder}/run"],
                                    capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("stage 'train' failed", result.stderr)
        self.assertIn("run ./quickstart", result.stderr)


class counting_of_tests(unittest.TestCase):
    def count(self, junit, programs):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "ctest.junit").write_text(junit)
            for name, text in programs.items():
                (path / name).write_text(text)
            answer = subprocess.run([ROOT / "scripts/lib/count_tests.py", path / "ctest.junit", path], capture_output=True, text=True, check=True)
        return answer.stdout.strip()

    def test_cases_are_counted_and_not_programs(self):
        junit = '<testsuite><testcase name="a" status="run"/><testcase name="b" status="run"/></testsuite>'
        programs = {"a.xml": '<testsuites tests="3" failures="0" disabled="0" errors="0"/>', "b.xml": '<testsuites tests="2" failures="0"/>'}
        self.assertEqual(self.count(junit, programs), "5 0")

    def test_failed_cases_are_counted_once(self):
        junit = '<testsuite><testcase name="a" status="fail"><failure message=""/></testcase></testsuite>'
        self.assertEqual(self.count(junit, {"a.xml": '<testsuites tests="3" failures="2" errors="0"/>'}), "1 2")

    def test_a_program_that_crashed_is_one_failure(self):
        junit = '<testsuite><testcase name="a" status="fail"><failure message=""/></testcase><testcase name="b" status="run"/></testsuite>'
        self.assertEqual(self.count(junit, {"b.xml": '<testsuites tests="4" failures="0"/>'}), "4 1")


class failed_tests(unittest.TestCase):
    def told(self, output, status="fail"):
        with tempfile.TemporaryDirectory() as folder:
            junit = pathlib.Path(folder) / "ctest.junit"
            junit.write_text(f'<testsuite><testcase name="a_test" status="{status}"><system-out>{output}</system-out></testcase></testsuite>')
            answer = subprocess.run([ROOT / "scripts/lib/failed_tests.py", junit], capture_output=True, text=True, check=True)
        return answer.stdout.splitlines()

    GOOD = "[ RUN      ] part.is_good\n[       OK ] part.is_good (3 ms)\n"
    BAD = "[ RUN      ] part.is_bad\n/far/away/part_test.cpp:7: Failure\nValue of: x\n[  FAILED  ] part.is_bad (3 ms)\n"

    def test_a_case_is_named_with_its_place(self):
        self.assertEqual(self.told(self.GOOD + self.BAD), ["failed: a_test part.is_bad: part_test.cpp:7: Value of: x"])

    def test_a_case_that_hung_is_named(self):
        self.assertEqual(self.told(self.GOOD + "[ RUN      ] part.hangs\n"), ["failed: a_test part.hangs: did not end"])

    def test_a_case_of_unittest_is_named_with_what_was_wrong(self):
        said = f"{'=' * 70}\nFAIL: test_x (__main__.c.test_x)\n{'-' * 70}\nTraceback:\n  line\nAssertionError: 0 != 2\n\n{'-' * 70}\nRan 1 test\n"
        self.assertEqual(self.told(said), ["failed: a_test test_x: AssertionError: 0 != 2"])

    def test_a_program_that_names_no_case_is_told_by_its_last_line(self):
        self.assertEqual(self.told("one\ncannot open x\n"), ["failed: a_test: cannot open x"])

    def test_what_passed_is_not_told(self):
        self.assertEqual(self.told(self.GOOD, status="run"), [])


class stages(unittest.TestCase):
    def run_stage(self, *command):
        with tempfile.TemporaryDirectory() as folder:
            script = f'source {ROOT}/scripts/lib/stages.sh; stages_log_dir={folder}; stage probe "a probe" "$@"'
            return subprocess.run(["bash", "-c", script, "bash", *command], capture_output=True, text=True)

    def test_a_stage_that_passes_says_how_long_it_took(self):
        result = self.run_stage("true")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^probe +a probe \.\.\. ok, 0\.\d s$")

    def test_a_stage_that_fails_is_named_and_shows_its_output(self):
        result = self.run_stage("bash", "-c", "echo no such luck; exit 7")
        self.assertEqual(result.returncode, 7)
        self.assertIn("no such luck", result.stderr)
        self.assertIn("stage 'probe' failed (exit status 7)", result.stderr)

    def run_script(self, script):
        with tempfile.TemporaryDirectory() as folder:
            opening = f"set -euo pipefail; source {ROOT}/scripts/lib/stages.sh; stages_log_dir={folder}; fifo={folder}/fifo; mkfifo $fifo\n"
            return subprocess.run(["bash", "-c", opening + script], capture_output=True, text=True)

    def test_stages_that_run_at_once_are_told_one_after_the_other(self):
        result = self.run_script("""
            begin_stage hears bash -c "read -r <$fifo"
            begin_stage says bash -c "echo word >$fifo"
            stage hears "what the other says"
            stage says "a word"
            """)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"\Ahears +what the other says \.\.\. ok, [0-9.]+ s\nsays +a word \.\.\. ok, [0-9.]+ s\n\Z")

    def test_one_of_them_that_fails_is_named_and_shows_its_output(self):
        result = self.run_script("""
            begin_stage good true
            begin_stage bad bash -c "echo no such luck; exit 7"
            stage good "is good"
            stage bad "is bad"
            """)
        self.assertEqual(result.returncode, 7)
        self.assertIn("no such luck", result.stderr)
        self.assertIn("stage 'bad' failed (exit status 7)", result.stderr)

    def test_those_that_nobody_waits_for_are_ended_with_all_that_they_started(self):
        result = self.run_script("""
            begin_stage long bash -c "sleep 1000 & echo \\$! >$fifo; wait"
            read -r started <$fifo
            end_stages
            ! grep -q "^State:[[:space:]][^Z]" /proc/$started/status 2>/dev/null
            """)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_times_are_readable(self):
        script = f"source {ROOT}/scripts/lib/stages.sh; format_seconds 900; echo; format_seconds 59999; echo; format_seconds 185000"
        self.assertEqual(subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout, "0.9 s\n59.9 s\n3 min 05 s")

    def expect_room(self, gb, *folders):
        """On a disk with 5 GB left, where each folder holds 2 GB."""
        script = f"""source {ROOT}/scripts/lib/stages.sh
        df() {{ printf 'Avail\\n5120M\\n'; }}
        du() {{ printf '2048\\tfolder\\n'; }}
        expect_room "$@" """
        return subprocess.run(["bash", "-c", script, "bash", gb, *folders], capture_output=True, text=True, cwd=ROOT)

    def test_a_disk_without_room_is_told_before_anything_is_built(self):
        result = self.expect_room("8", "docs")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, f"no room: 8 GB are needed in {ROOT} (docs), where 2 GB are used by it and 5 GB are left: make room, or build elsewhere\n")

    def test_what_is_built_already_needs_no_room_again(self):
        self.assertEqual(self.expect_room("7", "docs").returncode, 0)
        self.assertEqual(self.expect_room("7", "no-such-folder").returncode, 1)


class the_gate(unittest.TestCase):
    """`./check` of a checkout in which every command passes at once."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout, self.fakes = pathlib.Path(folder.name) / "checkout", pathlib.Path(folder.name) / "fakes"
        for name in ("check", "scripts/lib/stages.sh", "scripts/lib/count_tests.py", "scripts/lib/failed_tests.py"):
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.checkout / name)
        for script in (ROOT / "scripts/lint").glob("*.py"):
            self.write(f"scripts/lint/{script.name}", f"#!/bin/bash\necho '{script.stem}: 1 file looked at, 0 findings'\n")
        for name in ("scripts/install_dependencies", "scripts/quickstart_demo"):
            self.write(name, "#!/bin/bash\n")
        for name in ("tests/lint/test_x.py", "tests/specification/x_test.py", "tests/package/package_test.py"):
            self.write(name, "import unittest\nclass x(unittest.TestCase):\n    def test_x(self): pass\nif __name__ == '__main__': unittest.main(argv=['x'])\n")
        for name in ("cmake", "doxygen"):
            self.write(self.fakes / name, "#!/bin/bash\n")
        self.write(self.fakes / "ctest", """#!/bin/bash
while [[ $1 != --output-junit ]]; do shift; done
echo '<testsuite/>' >"$2"
echo '<testsuites tests="2" failures="0"/>' >"${GTEST_OUTPUT#xml:}a.xml"
""")

    def write(self, name, text):
        (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (self.checkout / name).write_text(text)
        (self.checkout / name).chmod(0o755)

    def check(self, *options):
        environment = dict(os.environ, PATH=f"{self.fakes}:{os.environ['PATH']}")
        return subprocess.run([self.checkout / "check", *options], env=environment, capture_output=True, text=True)

    def told(self, result):
        """The stages that it has told of, and its last lines."""
        lines = result.stdout.splitlines()
        return [line.split()[0] for line in lines if " ... ok, " in line], [line for line in lines if " ... " not in line]

    def test_what_it_does_not_run_is_what_full_runs_besides(self):
        short = self.check()
        self.assertEqual((short.returncode, short.stderr), (0, ""), short.stdout)
        ran, last = self.told(short)
        full = self.check("--full")
        self.assertEqual((full.returncode, full.stderr), (0, ""), full.stdout)
        everything, last_of_full = self.told(full)
        left = [stage for stage in everything if stage not in ran]
        self.assertEqual(sorted(ran + left), sorted(everything))
        self.assertIn("test-processes", ran)
        self.assertIn("test-long", left)
        self.assertIn("build-debug", left)
        self.assertEqual(last[0], f"check: not run: {' '.join(left)}: ./check --full runs them too, as continuous integration does")
        self.assertEqual(last[-1], "19 passed, 0 failed")  # 13 lint scripts, 2 programs of unittest, 2 runs of ctest of 2 cases each
        self.assertEqual(last_of_full[-1], "30 passed, 0 failed")
        self.assertEqual(len(last_of_full), 2, last_of_full)

    def test_a_stage_that_fails_ends_all_and_is_named(self):
        self.write("scripts/lint/sizes.py", "#!/bin/bash\necho 'x.cpp:1: too long'\nexit 1\n")
        failed = self.check()
        self.assertEqual(failed.returncode, 1)
        self.assertIn("x.cpp:1: too long", failed.stderr)
        ran, last = self.told(failed)
        self.assertEqual(ran, ["install"])
        self.assertRegex(last[-2], "^check: failed in stage 'lint' after")
        self.assertEqual(last[-1], "12 passed, 1 failed")

    def left_out(self, within):
        """Where each run of tests takes ten minutes and all else no time."""
        clock = self.checkout / "clock"
        clock.write_text("0")
        self.write(self.fakes / "date", f'#!/bin/bash\nread -r ms <{clock}\necho "$ms"\n')
        ctest = self.fakes / "ctest"
        if "clock" not in ctest.read_text():
            self.write(ctest, ctest.read_text() + f'read -r ms <{clock}; echo $((ms + 600000)) >{clock}\n')
        result = self.check("--full", "--within", str(within))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        ran, last = self.told(result)
        named = [line for line in last if "no time" in line]
        self.assertEqual(len(named), len(last) - 2)
        left = named[0].removeprefix(f"check: no time for them within {within} minutes: ").partition(":")[0].split() if named else []
        self.assertFalse(set(left) & set(ran))
        return left

    def test_what_would_end_too_late_is_left_out_and_named(self):
        self.assertEqual(self.left_out(60), [])
        self.assertEqual(self.left_out(45), ["build-debug", "test-debug"])
        self.assertEqual(self.left_out(35), ["test-long", "build-debug", "test-debug"])

    def test_a_time_is_a_number_and_for_all_stages(self):
        for options, word in ((("--full", "--within"), "number"), (("--full", "--within", "0"), "number"), (("--within", "9"), "--full")):
            refused = self.check(*options)
            self.assertEqual(refused.returncode, 2, options)
            self.assertIn(word, refused.stderr)

    def test_continuous_integration_runs_all(self):
        self.assertIn("./check --full", (ROOT / ".ci/run").read_text())


class usage(unittest.TestCase):
    def test_every_entry_point_explains_itself_and_refuses_what_it_does_not_know(self):
        for script in ("quickstart", "check", "scripts/install_cuda", "scripts/install_dependencies", "scripts/install_kustomize", "scripts/check_tsan"):
            explained = subprocess.run([ROOT / script, "--help"], capture_output=True, text=True)
            self.assertEqual((explained.returncode, explained.stderr), (0, ""), script)
            self.assertIn("Usage: ", explained.stdout)
            refused = subprocess.run([ROOT / script, "--no-such-option"], capture_output=True, text=True)
            self.assertEqual(refused.returncode, 2, script)
            self.assertIn("--no-such-option", refused.stderr)

    def test_a_stage_that_does_not_exist_is_refused_with_those_that_do(self):
        refused = subprocess.run([ROOT / "check", "--stage", "lnit"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("lint", refused.stderr)

    def test_the_package_list_holds_one_name_a_line(self):
        listed = subprocess.run([ROOT / "scripts/install_dependencies", "--list"], capture_output=True, text=True, check=True).stdout.split("\n")
        self.assertIn("libcaf-dev", listed)
        self.assertNotIn("python3-venv", listed)

    def test_a_package_that_is_needed_for_several_things_is_listed_once(self):
        command = [ROOT / "scripts/install_dependencies", "--with-check", "--with-cuda", "--with-peers", "--list"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
        self.assertEqual(listed.count("python3-venv"), 1)


class packages_of_pypi(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout = pathlib.Path(folder.name) / "checkout"
        for name in ("scripts/install_dependencies", "benchmarks/pytorch/requirements.txt"):
            (self.checkout / name).parent.mkdir(parents=True)
            shutil.copy(ROOT / name, self.checkout / name)
        self.fakes = pathlib.Path(folder.name) / "fakes"
        self.fakes.mkdir()
        self.fake("dpkg-query", 'shift 3; printf "installed %s\\n" "$@"')
        self.fake("apt-get", "exit 1")

    def fake(self, name, body):
        (self.fakes / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.fakes / name).chmod(0o755)

    def install(self, option="--with-peers"):
        environment = dict(os.environ, PATH=f"{self.fakes}:{os.environ['PATH']}")
        return subprocess.run([self.checkout / "scripts/install_dependencies", option], env=environment, capture_output=True, text=True)

    def test_every_version_is_pinned(self):
        wanted = [line for line in (ROOT / "benchmarks/pytorch/requirements.txt").read_text().splitlines() if not line.startswith("#")]
        self.assertIn("torch==", wanted[0])
        for line in wanted:
            self.assertRegex(line, r"^[a-z]+==[0-9.]+$")

    def test_a_full_disk_is_told_before_anything_is_fetched(self):
        self.fake("df", "printf 'Avail\\n 100\\n'")
        refused = self.install()
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertRegex(refused.stderr, "8000 MB of disk.* has 100")
        self.assertFalse((self.checkout / ".cache/peers/pytorch/bin").exists())

    def test_an_environment_that_is_whole_is_left_alone(self):
        environment = self.checkout / ".cache/peers/pytorch"
        environment.mkdir(parents=True)
        shutil.copy(ROOT / "benchmarks/pytorch/requirements.txt", environment)
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("PyTorch is installed", done.stdout)

    def test_cuda_is_installed_by_a_script_of_its_own(self):
        script = self.checkout / "scripts/install_cuda"
        script.write_text("#!/bin/bash\necho installed CUDA\n")
        script.chmod(0o755)
        done = self.install("--with-cuda")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "(?s)Debian packages are installed.*installed CUDA")
        self.assertNotIn("CUDA", self.install("--with-check").stdout)


if __name__ == "__main__":
    unittest.main()
