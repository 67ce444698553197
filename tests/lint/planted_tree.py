"""A temporary source tree in which a lint script must find what a test planted, and nothing else."""

import pathlib
import subprocess
import tempfile
import unittest

LINT = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/lint"


class planted_tree(unittest.TestCase):
    """Base of the tests: `plant` writes files, `lint` runs a script on the tree."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def plant(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def lint(self, script, *options):
        """(exit status, lines that complain)"""
        result = subprocess.run([LINT / script, "--root", self.root, *options], capture_output=True, text=True, timeout=120)
        self.assertEqual(result.stderr, "")
        return result.returncode, [line for line in result.stdout.splitlines() if line.startswith("error: ")]

    def assert_clean(self, script, *options):
        self.assertEqual(self.lint(script, *options), (0, []))

    def assert_finds(self, script, *words):
        """One complaint, which holds all of `words`."""
        status, complaints = self.lint(script)
        self.assertEqual(status, 1)
        self.assertEqual(len(complaints), 1, complaints)
        for word in words:
            self.assertIn(word, complaints[0])
