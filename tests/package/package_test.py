"""What is installed, as others use it: programs built with find_package(dlrun) alone, and the Debian packages.

Usage: package_test.py BUILD_DIR WORK_DIR: installs from BUILD_DIR; all that is made goes into WORK_DIR.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

from dlrun_job import running_job  # noqa: E402

BUILD_DIR = WORK_DIR = None  # of the command line
WARNINGS = "-Wall -Wextra -Wpedantic -Werror"


def run(*command, expect=0, **options):
    """@returns what the command printed; both streams together."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != expect:
        raise AssertionError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def build_example(name, prefix, folder):
    """Configures and builds examples/NAME as a project of its own. @returns the folder of its programs."""
    run("cmake", "-S", ROOT / "examples" / name, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_FLAGS={WARNINGS}")
    run("cmake", "--build", folder)
    return folder


def sha256_of(run_dir):
    return json.loads((run_dir / "report.json").read_text())["parameters_sha256"]


class installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK_DIR, ignore_errors=True)
        cls.prefix = WORK_DIR / "prefix"
        run("cmake", "--install", BUILD_DIR, "--prefix", cls.prefix, "--strip")
        cls.embed = build_example("embed", cls.prefix, WORK_DIR / "embed") / "embed"
        cls.my_dlrun = build_example("custom_layer", cls.prefix, WORK_DIR / "custom_layer") / "my_dlrun"
        cls.dlrun = cls.prefix / "bin/dlrun"
        cls.spec = ROOT / "examples/custom_layer/spiral.yaml"

    def train(self, name, *options):
        folder = WORK_DIR / "runs" / name
        run(self.my_dlrun, "train", self.spec, "--run-dir", folder, *options)
        return folder

    def test_a_program_trains_a_job_built_in_cpp_and_uses_the_model(self):
        said = run(self.embed, ROOT / "examples/embed/circle.csv", WORK_DIR / "runs/circle")
        self.assertIn("800 steps, 0 samples missing, 0 duplicated", said)
        self.assertTrue(said.endswith("(0.0, 0.1): class 1\n(0.9, 0.9): class 0\n"), "class 1 is 'yes': inside")

    def test_its_own_parts_give_the_same_bits_for_any_number_of_workers(self):
        alone = self.train("alone", "--set", "cluster.workers=1", "--set", "cluster.ps_shards=1")
        many = self.train("many", "--set", "cluster.workers=3", "--set", "cluster.placement=threads")
        self.assertEqual(sha256_of(alone), sha256_of(many))

    def test_its_own_parts_survive_kills_with_the_same_bits(self):
        longer = ("--set", "train.epochs=400")
        reference = self.train("undisturbed", *longer)
        folder = WORK_DIR / "runs/killed"
        dice = random.Random(1)
        with running_job(self.my_dlrun, folder, ["train", str(self.spec), "--run-dir", str(folder), *longer]) as job:
            for step, role in ((500, "worker"), (2000, "ps_shard"), (3500, "worker")):
                with job.held_from_step(step):
                    job.kill(role, dice.randrange(2))
            report = job.expect_complete()
        self.assertEqual(report["parameters_sha256"], sha256_of(reference))
        self.assertEqual(len(report["recoveries"]), 3)

    def test_every_verb_of_the_program_knows_them(self):
        folder = self.train("verbs")
        self.assertIn("worst_class", run(self.my_dlrun, "evaluate", folder))
        weights = WORK_DIR / "spiral.safetensors"
        run(self.my_dlrun, "export", folder, "--output", weights)
        data = ROOT / "examples/custom_layer/spiral.txt"
        self.assertEqual(run(self.my_dlrun, "predict", folder, "--input", data),
                         run(self.my_dlrun, "predict", weights, "--input", data, "--spec", self.spec))

    def test_the_plain_program_says_what_it_lacks(self):
        said = run(self.dlrun, "validate", self.spec, expect=2)
        self.assertIn("no layer type 'swish' is registered in this program", said)

    def test_options_of_its_own_parts_are_checked_before_anything_starts(self):
        folder = WORK_DIR / "runs/wrong"
        said = run(self.my_dlrun, "train", self.spec, "--run-dir", folder, "--set",
                   "model.layers[1].custom.options={bata: 2}", expect=2)
        self.assertIn("swish: there is no option 'bata'; there are beta", said)
        self.assertFalse(folder.exists())

    def test_the_debian_packages_hold_the_same(self):
        run("cpack", "-B", WORK_DIR / "packages", cwd=BUILD_DIR)
        packages = sorted((WORK_DIR / "packages").glob("*.deb"))
        has_module = (BUILD_DIR / "lib/libdlrun_cuda.so").exists()  # where CUDA is
        self.assertEqual([package.name.split("_")[0] for package in packages],
                         [*(["dlrun-cuda"] if has_module else []), "dlrun-dev", "dlrun"])
        self.assertIn("librocksdb", run("dpkg-deb", "--field", packages[-1], "Depends"))
        unpacked = WORK_DIR / "unpacked"
        for package in packages:
            run("dpkg-deb", "--extract", package, unpacked)
        version = run(unpacked / "usr/bin/dlrun", "version")
        self.assertEqual(version, run(self.dlrun, "version"))
        embed = build_example("embed", unpacked / "usr", WORK_DIR / "embed-debian") / "embed"
        libraries = run("ldd", embed)
        self.assertIn(f"{unpacked}/usr/lib/", libraries)
        [library] = (unpacked / "usr/lib").rglob("libdlrun.so")
        self.assertEqual((library.parent / "libdlrun_cuda.so").exists(), has_module, "where dlrun looks for it")


if __name__ == "__main__":
    BUILD_DIR, WORK_DIR = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
