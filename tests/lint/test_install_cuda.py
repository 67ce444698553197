"""scripts/install_cuda, with wheels that are made here in the place of NVIDIA's, and pip as it is."""

import base64
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMPILER = {"nvidia/cu13/bin/nvcc": "#!/bin/sh\necho compiles\n", "nvidia/cu13/include/cuda_runtime_api.h": "", "nvidia/cu13/lib/libcudart_static.a": "",
            "nvidia/cu13/lib/libcublasLt.so.13": "cublasLt"}
CUDNN = {"nvidia/cudnn/include/cudnn_graph.h": "", "nvidia/cudnn/lib/libcudnn.so.9": "cudnn"}


def make_wheel(folder, name, version, files):
    """A line of requirements for the wheel that it writes."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    files = {**files, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: not-to-be-fetched\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode() for path, text in files.items()}
    files[f"{info}/RECORD"] = "".join(f"{path},sha256={digest},\n" for path, digest in digests.items()) + f"{info}/RECORD,,\n"
    wheel = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100755 if "/bin/" in path else 0o100644) << 16
            archive.writestr(entry, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


class installation_of_cuda(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout, self.wheels, self.fakes = (pathlib.Path(folder.name, name) for name in ("checkout", "wheels", "fakes"))
        for path in (self.checkout / "scripts", self.checkout / "build", self.wheels, self.fakes):
            path.mkdir(parents=True)
        shutil.copy(ROOT / "scripts/install_cuda", self.checkout / "scripts")
        self.cuda = self.checkout / "build/cuda"
        self.requirements = self.checkout / "scripts/cuda_requirements.txt"
        self.require(make_wheel(self.wheels, "fake-nvcc", "13.0", COMPILER), make_wheel(self.wheels, "fake-cudnn", "9.1", CUDNN))

    def require(self, *lines):
        self.requirements.write_text("# what is fetched==nothing\n" + "".join(lines))

    def fake(self, name, body):
        (self.fakes / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.fakes / name).chmod(0o755)

    def install(self, *options):
        environment = {**os.environ, "PATH": f"{self.fakes}:{os.environ['PATH']}", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        return subprocess.run([self.checkout / "scripts/install_cuda", *options], env=environment, capture_output=True, text=True, timeout=120)

    def assert_refused(self, pattern):
        refused = self.install()
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertRegex(refused.stderr, pattern)

    def assert_nothing_is_left(self):
        self.assertEqual(list((self.checkout / "build").iterdir()), [])

    def test_the_wheels_become_one_folder_that_the_build_finds(self):
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(subprocess.run([self.cuda / "bin/nvcc"], capture_output=True, text=True, check=True).stdout, "compiles\n")
        for path, text in (("include/cuda_runtime_api.h", ""), ("include/cudnn_graph.h", ""), ("lib/libcudart_static.a", ""),
                           ("lib64/libcublasLt.so", "cublasLt"), ("targets/x86_64-linux/lib/libcudnn.so", "cudnn"),
                           ("targets/x86_64-linux/include/cudnn_graph.h", "")):
            self.assertEqual((self.cuda / path).read_text(), text, path)
        self.assertEqual(sorted(path.name for path in (self.cuda / "dist-info").iterdir()),
                         ["fake_cudnn-9.1.dist-info", "fake_nvcc-13.0.dist-info"])
        self.assertEqual([path.name for path in (self.checkout / "build").iterdir()], ["cuda"])
        self.assertIn("CUDA is installed", self.install().stdout)

    def test_what_is_there_is_left_alone_until_the_requirements_change(self):
        self.cuda.mkdir()
        shutil.copy(self.requirements, self.cuda)
        (self.cuda / "of the old one").touch()
        self.fake("df", "exit 1")  # not even looked at
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("CUDA is installed", done.stdout)
        (self.fakes / "df").unlink()
        self.require(make_wheel(self.wheels, "fake-nvcc", "13.1", COMPILER), make_wheel(self.wheels, "fake-cudnn", "9.1", CUDNN))
        self.assertEqual(self.install().returncode, 0)
        self.assertFalse((self.cuda / "of the old one").exists())
        self.assertTrue((self.cuda / "dist-info/fake_nvcc-13.1.dist-info").exists())

    def test_a_wheel_of_another_hash_is_refused_and_nothing_is_left_nor_what_a_killed_installation_left(self):
        (self.checkout / "build/cuda.partial/wheels").mkdir(parents=True)
        self.require(re.sub("sha256:..", "sha256:00", self.requirements.read_text()))
        self.assert_refused("(?s)DO NOT MATCH THE HASHES.*install_cuda: pip could not install.*pip config.*/usr/local/cuda")
        self.assert_nothing_is_left()

    def test_a_download_that_fails_keeps_what_was_there(self):
        self.cuda.mkdir()
        (self.cuda / "cuda_requirements.txt").write_text("an older one")
        for wheel in self.wheels.glob("fake_cudnn*"):
            wheel.unlink()
        self.assert_refused("(?s)fake-cudnn.*pip could not install")
        self.assertEqual([path.name for path in (self.checkout / "build").iterdir()], ["cuda"])
        self.assertEqual((self.cuda / "cuda_requirements.txt").read_text(), "an older one")

    def test_a_full_disk_is_told_before_anything_is_fetched(self):
        self.fake("df", "printf 'Avail\\n 100\\n'")
        self.assert_refused("2500 MB of disk.* has 100")
        self.assert_nothing_is_left()

    def test_a_cuda_of_somebody_else_is_not_touched(self):
        self.cuda.mkdir()
        (self.cuda / "theirs").touch()
        self.assert_refused("is not of scripts/install_cuda: move it away")
        self.assertTrue((self.cuda / "theirs").exists())

    def test_another_processor_is_refused(self):
        self.fake("uname", "echo Linux aarch64")
        self.assert_refused("for Linux on x86-64, and this is Linux aarch64")
        self.assert_nothing_is_left()

    def test_two_at_once_do_not_disturb_each_other(self):
        lock = os.open(self.checkout / "build", os.O_RDONLY)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.assert_refused("another scripts/install_cuda is at work")
        self.assert_nothing_is_left()

    def test_the_list_holds_one_package_a_line(self):
        listed = self.install("--list")
        self.assertEqual((listed.returncode, listed.stdout), (0, "fake-nvcc==13.0\nfake-cudnn==9.1\n"))
        self.assert_nothing_is_left()


class requirements_of_cuda(unittest.TestCase):
    def test_each_is_an_exact_version_with_its_hash(self):
        lines = [line for line in (ROOT / "scripts/cuda_requirements.txt").read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(len(lines), 7)
        for line in lines:
            self.assertRegex(line, r"^nvidia-[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}$")

    def test_the_compiler_is_of_the_release_that_the_kernels_are_held_to(self):
        release = re.search(r"^# CUDA ([0-9.]+),", (ROOT / "kernels/cuda/resources.txt").read_text())[1]
        self.assertIn(f"nvidia-cuda-nvcc=={release}.", (ROOT / "scripts/cuda_requirements.txt").read_text())


if __name__ == "__main__":
    unittest.main()
