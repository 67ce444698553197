"""Wrong input: exit 2, one message that names the thing and the place, and nothing left behind (bad_inputs.py)."""

import re
import subprocess
import tempfile

import bad_inputs
from bench_case import bench_case, main


class bad_input(bench_case):
    """A test for each case of the list, and what is not of its form. How soon is for scripts/acceptance/bad_input."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dlrun-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def expect_refusals(self, one):
        for refusal in bad_inputs.carry_out(self.program, one, self.folder, attempts=1):
            with self.subTest(refusal.command):
                self.assertEqual(list(refusal.problems(one)), [])

    def test_a_missing_argument_and_an_unknown_option(self):
        for words in (("train",), (), ("status", self.folder, "--jsn")):
            with self.subTest(words):
                answer = subprocess.run([self.program, *words], capture_output=True, text=True, timeout=60,
                                        cwd=self.folder, stdin=subprocess.DEVNULL)
                self.assertEqual(answer.returncode, bad_inputs.BAD_USAGE, answer)
                self.assertNotEqual(answer.stderr + answer.stdout, "")


def add_tests():
    for one in bad_inputs.CASES:
        setattr(bad_input, "test_" + re.sub(r"\W+", "_", one.name), lambda self, one=one: self.expect_refusals(one))


add_tests()

if __name__ == "__main__":
    main()
