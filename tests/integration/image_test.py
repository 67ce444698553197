"""`scripts/build_image`: the image has what dlrun needs and nothing else, the same twice, and a job trains in it that has no rights.
Pods of kubernetes_test run in it too."""

import contextlib
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import containers
import images
import small_data
from bench_case import bench_case, main
from dlrun_job import wait_until
from small_cluster import read_manifests

MODULES = pathlib.Path(sys.argv.pop(2))  # where the build has its modules for tests
COMPLETED, FAILED, BAD_USAGE = 0, 1, 2
USER = 65532  # as pods have it; see is_restricted of manifests_test
MB = 1_000_000
BYTES_MAX, COMPRESSED_BYTES_MAX = 100 * MB, 35 * MB
EPOCH = 1_700_000_000
FOLDERS = {"data", "dev", "etc", "lib64", "proc", "sys", "tmp", "usr", "var"}


class image:
    """Read from its archive, whatever else reads such."""

    def __init__(self, file):
        self.archive = tarfile.open(file)
        self.index = self.json("index.json")
        [manifest] = self.index["manifests"]
        self.digest, self.name = manifest["digest"], manifest["annotations"]["org.opencontainers.image.ref.name"]
        self.manifest = json.loads(self.blob(manifest["digest"]))
        self.config = json.loads(self.blob(self.manifest["config"]["digest"]))
        [layer] = self.manifest["layers"]
        self.compressed = self.blob(layer["digest"])
        self.layer = gzip.decompress(self.compressed)
        self.archive.close()

    def json(self, name):
        return json.load(self.archive.extractfile(name))

    def blob(self, digest):
        kind, _, name = digest.partition(":")
        content = self.archive.extractfile(f"blobs/{kind}/{name}").read()
        assert hashlib.new(kind, content).hexdigest() == name
        return content


class builds_images(bench_case):
    records = 200

    def build(self, name="image.tar", *words, program=None, **options):
        """@returns the archive"""
        try:
            self.told = images.build(program or self.program, self.bench.folder / name, *words, **options)
        except images.no_image as why:
            self.leave_out(why)
        return self.bench.folder / name

    def refused(self, *options, **variables):
        done = subprocess.run([images.BUILD_IMAGE, *options], capture_output=True, text=True, env=os.environ | variables)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr


class is_an_image(builds_images):
    def test_the_same_twice_wherever_whoever_and_when(self):
        first = self.build("first.tar")
        said = self.told
        elsewhere = self.bench.folder / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        second = self.build("second.tar", cwd=elsewhere, umask=0o077, env=os.environ | {"TMPDIR": str(elsewhere), "LC_ALL": "C.UTF-8"})
        self.assertEqual(first.read_bytes(), second.read_bytes())
        self.assertEqual(said.splitlines()[-1], image(first).digest)
        self.assertEqual(os.listdir(elsewhere), [])

    def test_of_one_time_which_may_be_given(self):
        made = image(self.build(env=os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH)}))
        self.assertEqual(made.config["created"], "2023-11-14T22:13:20Z")
        self.assertEqual([one["created"] for one in made.config["history"]], ["2023-11-14T22:13:20Z"])
        with tarfile.open(self.bench.folder / "image.tar") as outer:
            self.assertEqual({one.mtime for one in outer}, {EPOCH})

    def test_that_is_small_and_has_only_what_dlrun_needs(self):
        made = image(self.build())
        self.assertLessEqual(len(made.layer), BYTES_MAX)
        self.assertLessEqual(len(made.compressed), COMPRESSED_BYTES_MAX)
        self.assertEqual(made.name, images.NAME)
        self.assertEqual((made.config["architecture"], made.config["os"]), ("amd64", "linux"))
        self.assertEqual(made.config["config"], {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/local/bin/dlrun"]})
        (self.bench.folder / "layer.tar").write_bytes(made.layer)
        with tarfile.open(self.bench.folder / "layer.tar") as layer:
            entries = layer.getmembers()
        names = [one.name for one in entries]
        self.assertEqual(names, sorted(set(names)))
        self.assertEqual({name.partition("/")[0] for name in names}, FOLDERS)
        for one in entries:
            self.assertEqual((one.uid, one.gid, one.uname, one.gname), (0, 0, "", ""), one.name)
            self.assertTrue(one.isfile() or one.isdir(), one.name)
            self.assertTrue(one.mode in ((0o755, 0o644) if one.isfile() else (0o755, 0o1777)), one.name)
        programs = [one.name for one in entries if one.isfile() and one.mode & 0o100 and not re.search(r"\.so(\.|$)", one.name)]
        self.assertEqual(programs, ["usr/local/bin/dlrun"])

    def test_whose_user_and_program_are_those_of_the_pods(self):
        config = image(self.build()).config["config"]
        spec = small_data.write_spec(self.bench.folder / "job.yaml", self.spec())
        told = subprocess.run([self.program, "manifests", spec, "--image", "x", "--name", "x", "--secret", "x"], capture_output=True, text=True)
        self.assertEqual(told.returncode, COMPLETED, told.stderr)
        pod = read_manifests(told.stdout)["Job", "x"]["spec"]["template"]["spec"]
        self.assertEqual(f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}", config["User"])
        self.assertEqual(pod["containers"][0]["command"], config["Entrypoint"])

    def test_that_names_the_packages_that_are_in_it_and_their_licences(self):
        made = image(self.build())
        (self.bench.folder / "layer.tar").write_bytes(made.layer)
        with tarfile.open(self.bench.folder / "layer.tar") as layer:
            names = set(layer.getnames())
            described = {name.rpartition("/")[2] for name in names if name.startswith("var/lib/dpkg/status.d/")}
            for package in ("libc6", "libcurl4", "libdnnl2", "librocksdb-dev", "libssl3", "ca-certificates"):
                self.assertIn(package, described)
            for package in described:
                self.assertIn(f"usr/share/doc/{package}/copyright", names)
                text = layer.extractfile(f"var/lib/dpkg/status.d/{package}").read().decode()
                for line in (rf"\APackage: {re.escape(package)}\n", r"\nStatus: install ok installed\n", r"\nVersion: \S+\n"):
                    self.assertRegex(text, line)


class is_refused(builds_images):
    def test_what_is_not_built_yet(self):
        code, said = self.refused("--program", str(self.bench.folder / "dlrun"), "--output", str(self.bench.folder / "image.tar"))
        self.assertEqual(code, FAILED)
        self.assertIn("is not there: cmake --preset release && cmake --build --preset release --target dlrun\n", said)

    def test_without_the_program_that_writes_images(self):
        code, said = self.refused("--program", self.program, PATH=str(self.bench.folder))
        self.assertEqual((code, "scripts/install_dependencies --with-image" in said), (FAILED, True), said)

    def test_names_and_times_that_cannot_be(self):
        for name in ("", "a b", "-a", "dlrun:", "a//b"):
            code, said = self.refused("--program", self.program, f"--tag={name}")
            self.assertEqual((code, "as in registry.example.com/dlrun:0.2.0" in said), (BAD_USAGE, True), said)
        code, said = self.refused("--program", self.program, SOURCE_DATE_EPOCH="yesterday")
        self.assertEqual((code, "SOURCE_DATE_EPOCH='yesterday'" in said), (FAILED, True), said)


class cannot_be_run(Exception):
    """No container can be made here, and why."""


class runs_images(builds_images):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.leave_out(cannot_be_run("containers take root"))
        self.image = self.unpacked()
        self.root = self.bench.folder / "root"
        self.root.mkdir()
        containers.copy_image(self.image, self.root)
        self.data_folder, self.runs = self.bench.folder / "data", self.bench.folder / "runs"
        for folder in (self.data_folder, self.runs):
            folder.mkdir()
        os.chown(self.runs, USER, USER)
        for key in ("records", "labels"):
            (self.data_folder / key).write_bytes(pathlib.Path(self.data[key]).read_bytes())

    def unpacked(self):
        try:
            return images.root_of(self.program)
        except images.no_image as why:
            return self.leave_out(why)

    def words(self, *words):
        """Of a container that has no network, nor anything of this system but the kernel."""
        mounts = [(self.data_folder, "/data", True), (self.runs, "/var/lib/dlrun", False)]
        script = " && ".join(("set -e", *containers.laying_out(self.root, self.image, mounts), 'exec "$@"'))
        entry = containers.words_in(self.root, USER, USER, USER, {"PATH": "/usr/local/bin"}, ["/usr/local/bin/dlrun", *words])
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "sh", "-c", script, "sh", *entry]

    def call(self, *words):
        """@returns exit code, output, complaints"""
        done = subprocess.run(self.words(*words), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def job_file(self, **cluster):
        spec = self.spec()
        spec["cluster"] |= cluster
        inside = spec | {"data": {"train": {**self.data, "records": "/data/records", "labels": "/data/labels"}}}
        small_data.write_spec(self.data_folder / "job.yaml", inside)
        return spec


class trains(runs_images):
    def test_a_job_to_the_bits_that_it_has_elsewhere_and_tells_of_it(self):
        spec = self.job_file()
        code, _, complaint = self.call("train", "/data/job.yaml", "--run-dir", "/var/lib/dlrun/job")
        self.assertEqual(code, COMPLETED, complaint)
        report = json.loads((self.runs / "job/report.json").read_text())
        self.assertEqual(report["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])
        self.assertEqual((self.runs / "job/report.json").stat().st_uid, USER)
        code, told, complaint = self.call("status", "/var/lib/dlrun/job", "--json")
        self.assertEqual((code, json.loads(told)["status"]), (COMPLETED, "completed"), complaint)

    def test_with_no_right_and_no_other_file(self):
        self.job_file()
        job = subprocess.Popen(self.words("train", "/data/job.yaml", "--run-dir", "/var/lib/dlrun/job", "--set", "train.epochs=1000000"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        for pid in wait_until(lambda: self.roles_below(job.pid), "its roles run"):
            told = dict(line.split(":\t") for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
            self.assertEqual({told[f"Cap{kind}"].strip("0") for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")}, {""})
            self.assertEqual((told["NoNewPrivs"], set(told["Uid"].split()), set(told["Gid"].split())), ("1", {str(USER)}, {str(USER)}))
            self.assertEqual(set(os.listdir(f"/proc/{pid}/root")), FOLDERS)
            self.assertEqual(self.writable_in(f"/proc/{pid}/root"), ["var/lib/dlrun"])

    def roles_below(self, pid):
        """Processes of the container that begins with that one."""
        found, left = [], [pid]
        while left:
            one = left.pop()
            with contextlib.suppress(OSError):
                left += [int(child) for file in pathlib.Path(f"/proc/{one}/task").glob("*/children") for child in file.read_text().split()]
                if "\0dlrun-role\0" in pathlib.Path(f"/proc/{one}/cmdline").read_text():
                    found.append(one)
        return found

    def writable_in(self, root):
        """Folders in which even root could make a file."""
        return [one for one in ("", "data", "etc", "tmp", "usr/local/bin", "var", "var/lib/dlrun") if os.access(f"{root}/{one}", os.W_OK)]


class has_cuda(runs_images):
    """A module of the name of the real one, whose devices are on the processor; and a driver that NVIDIA's container runtime would bring
    along. The real module has no other way into an image."""

    IN_CONTAINER = "usr/lib/x86_64-linux-gnu/libcuda.so.1"

    def unpacked(self):
        installed = self.bench.folder / "installed"
        for folder in ("bin", "lib"):
            (installed / folder).mkdir(parents=True)
        shutil.copy(MODULES / "libdlrun_cuda_stand_in.so", installed / "lib/libdlrun_cuda.so")
        shutil.copy(self.program, installed / "bin/dlrun")
        file = self.build("image.tar", "--with-cuda", program=installed / "bin/dlrun")
        return images.unpack(file, self.bench.folder)

    def train(self, device="cuda"):
        self.job_file(device=device, workers=1)
        return self.call("train", "/data/job.yaml", "--run-dir", "/var/lib/dlrun/job")

    def test_which_waits_for_the_driver_of_its_node(self):
        self.assertFalse((self.image / self.IN_CONTAINER).exists())
        code, _, complaint = self.train()
        self.assertEqual((code, "this host has no NVIDIA driver: libcuda.so.1 is not there" in complaint), (BAD_USAGE, True), complaint)

    def test_and_computes_with_it_where_nobody_can_write(self):
        shutil.copy(MODULES / "libdlrun_fake_no_entry.so", self.image / self.IN_CONTAINER)
        code, _, complaint = self.train()
        self.assertEqual(code, COMPLETED, complaint)
        device = json.loads((self.runs / "job/report.json").read_text())["host"]["device"]
        self.assertNotIn(device, ("", "cpu"))

    def test_by_which_nvidias_runtime_sees_where_it_puts_that_driver(self):
        """https://github.com/NVIDIA/libnvidia-container, src/nvc_container.c."""
        self.assertTrue((self.image / "etc/debian_version").is_file())
        self.assertFalse([one for one in self.image.rglob("libcudart*")], "it would be of no use without the real module")

    def test_or_says_that_it_is_not_built(self):
        (self.bench.folder / "installed/lib/libdlrun_cuda.so").unlink()
        code, said = self.refused("--with-cuda", "--program", str(self.bench.folder / "installed/bin/dlrun"))
        self.assertEqual(code, FAILED)
        self.assertIn(f"{self.bench.folder}/installed/lib/libdlrun_cuda.so is not there, which --with-cuda puts into the image: docs/gpu.md", said)


class has_libraries_of_cuda(builds_images):
    """What stands for the libraries of NVIDIA, which load each other in the same way."""

    def compiled(self, name, *words):
        source = self.bench.folder / "source.c"
        source.write_text(f"int {re.sub('[^a-z]', '_', name)}(void) {{ return 1; }}\n")
        lib = self.bench.folder / "cuda/lib"
        lib.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", lib / name, f"-Wl,-soname,{name}", source, *words], check=True)
        return lib / name

    def test_and_the_parts_that_cudnn_loads_by_their_names(self):
        blas, cudnn = self.compiled("libcublasLt.so.13"), self.compiled("libcudnn.so.9")
        helper = self.compiled("libhelper.so.1")
        part = self.compiled("libcudnn_ops.so.9", "-Wl,--no-as-needed", f"-Wl,-rpath,{helper.parent}", helper)
        licence = self.bench.folder / "cuda/dist-info/nvidia_cublas-13.dist-info/licenses/License.txt"
        licence.parent.mkdir(parents=True)
        licence.write_text("NVIDIA's\n")
        installed = self.bench.folder / "installed"
        (installed / "bin").mkdir(parents=True)
        shutil.copy(self.program, installed / "bin/dlrun")
        module = self.compiled("libdlrun_cuda.so", "-Wl,--no-as-needed", f"-Wl,-rpath,{blas.parent}", blas, cudnn)
        (installed / "lib").mkdir()
        shutil.move(module, installed / "lib")
        made = image(self.build("image.tar", "--with-cuda", program=installed / "bin/dlrun"))
        (self.bench.folder / "layer.tar").write_bytes(made.layer)
        with tarfile.open(self.bench.folder / "layer.tar") as layer:
            for file in (blas, cudnn, part, helper):
                self.assertEqual(layer.extractfile(f"usr/lib/x86_64-linux-gnu/{file.name}").read(), file.read_bytes(), file)
            self.assertIn("usr/local/lib/libdlrun_cuda.so", layer.getnames())
            self.assertEqual(layer.extractfile("usr/share/doc/nvidia_cublas-13/copyright").read(), b"NVIDIA's\n")
        part.unlink()
        code, said = self.refused("--with-cuda", "--program", str(installed / "bin/dlrun"), f"--output={self.bench.folder}/no.tar")
        self.assertEqual((code, "the parts of cuDNN" in said), (FAILED, True), said)


if __name__ == "__main__":
    main()
