"""scripts/gpu/bundle: what it packs starts where nothing else of the checkout is. The programs in it are stand-ins here."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ("benchmarks", "examples/fashion_mnist", "scripts", "tests/integration")
BUILT = ("lib/libdlrun_cuda.so", *(f"bin/{name}" for name in ("kernels_cuda_gpu_test", "kernels_cuda_module_test", "step_throughput", "gpu_step", "dlrun")))
STARTED = ("run_all", "scripts/acceptance/gpu_kills", "benchmarks/pytorch/compare_gpu")


class bundle_for_a_gpu_machine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout, self.bundle = pathlib.Path(folder.name, "checkout"), pathlib.Path(folder.name, "bundle")
        for name in FOLDERS:
            shutil.copytree(ROOT / name, self.checkout / name, ignore=shutil.ignore_patterns("__pycache__"))

    def pack(self):
        return subprocess.run([self.checkout / "scripts/gpu/bundle", "--to", self.bundle], capture_output=True, text=True, timeout=120)

    def test_has_all_that_its_scripts_import(self):
        for name in BUILT:
            at = self.checkout / "build/release" / name
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy("/bin/ls", at)  # which has a library of its own
        done = self.pack()
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(self.checkout)
        for name in STARTED:
            with self.subTest(name):
                help_of = subprocess.run(["/usr/bin/python3", "-B", self.bundle / name, "--help"], cwd="/", capture_output=True, text=True, timeout=60)
                self.assertEqual(help_of.returncode, 0, help_of.stderr)
                self.assertIn("usage", help_of.stdout.lower())

    def test_names_what_is_not_built(self):
        done = self.pack()
        self.assertEqual((done.returncode, self.bundle.exists()), (1, False))
        self.assertIn("lib/libdlrun_cuda.so is not built: cmake --build --preset release --target gpu_bundle_parts", done.stderr)


if __name__ == "__main__":
    unittest.main()
