"""How benchmarks ask programs of Google Benchmark, and what is said where one has no such case."""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import measuring


class what_a_program_of_google_benchmark_says(unittest.TestCase):
    def setUp(self):
        owner = tempfile.TemporaryDirectory()
        self.addCleanup(owner.cleanup)
        self.folder = pathlib.Path(owner.name)

    def ask(self, body):
        program = self.folder / "asked"
        program.write_text(f"#!/bin/bash\n{body}\n")
        program.chmod(0o755)
        return measuring.google_benchmark(self.folder, "asked", "--benchmark_filter=peak")

    def test_is_the_numbers_of_each_case(self):
        self.assertEqual(self.ask("""echo '{"benchmarks": [{"name": "peak/AVX2", "flops": 3}]}'""")["peak/AVX2"]["flops"], 3)

    def test_names_the_program_and_what_was_asked_where_it_has_no_such_case(self):
        with self.assertRaisesRegex(measuring.failure, "asked --benchmark_filter=peak: Failed to match any"):
            self.ask("echo 'Failed to match any benchmarks against regex: peak'")

    def test_says_what_is_wrong_with_a_case(self):
        with self.assertRaisesRegex(measuring.failure, "asked: the processor has none"):
            self.ask("""echo '{"benchmarks": [{"name": "a", "error_occurred": true, "error_message": "the processor has none"}]}'""")


class compute_peak(unittest.TestCase):
    def test_has_a_case_for_each_instruction_set_that_run_all_names(self):
        cases = re.findall(r"BENCHMARK_CAPTURE\(peak, ([^,]+),", (ROOT / "benchmarks/compute_peak.cpp").read_text())
        named = re.findall(r'"(?:widest|avx2)": "([^"]+)"', (ROOT / "benchmarks/run_all").read_text())
        self.assertEqual(set(cases), {name.replace("-", "") for name in named})


if __name__ == "__main__":
    unittest.main()
