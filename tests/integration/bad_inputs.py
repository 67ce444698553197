"""Wrong inputs, what the refusal of each must name, and how to see that it is a clean one.

One list for bad_input_test and for scripts/acceptance/bad_input. A case makes its files in a folder of its own and says
which commands must be refused: exit code 2, one message, nothing left behind.
"""

import dataclasses
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import time
import typing
import zlib

import dlrun_job
import small_data
import weights_file

BAD_USAGE = 2
RECORDS = 203
LINES_MAX = 3
TIMEOUT_S = 60
NOBODY = 65534
INTERNAL = re.compile(r"what\(\)|terminate called|Traceback|Sanitizer|check failed")
# How soon each kind of mistake must be told. A "bomb" is as large as a job file may be: it takes reading.
MS_MAX = {"spec": 200, "bomb": 1000, "data": 2000, "folder": 200}
ATTEMPTS = 3  # at being so soon: others may use the machine
CASES = []


@dataclasses.dataclass
class bad_input:
    """`make(workplace)` writes the files of the case and returns its commands, each a tuple of arguments."""

    name: str
    kind: str
    words: tuple
    make: typing.Callable
    as_nobody: bool = False


def case(name, kind, *words, **options):
    """Adds what it decorates to the list."""
    def add(make):
        CASES.append(bad_input(name, kind, words, make, **options))
        return make
    return add


class workplace:
    """The folder of a case, with good data in it, and jobs on that or on other data."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.run_dir = self.folder / "run"
        self.data = small_data.write_images(self.folder, "train", RECORDS)

    def spec(self, model="mlp_dropout"):
        return small_data.make_spec(model, self.data)

    def file(self, name, content=b""):
        """Writes a file, and the folders it is in."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def job(self, spec, *overrides):
        """`train` and `validate` of a job, which is text or a specification."""
        if isinstance(spec, dict):
            path = small_data.write_spec(self.folder / "job.yaml", spec)
        else:
            path = self.file("job.yaml", spec)
        options = dlrun_job.option("--set", overrides)
        return [("train", path, "--run-dir", self.run_dir, *options), ("validate", path, *options)]

    def layers_job(self, *layers, **model):
        """A job of these layers."""
        spec = self.spec()
        spec["model"].update(layers=layers, **model)
        return self.job(spec)

    def data_job(self, keys, **model):
        """A job on this data.train."""
        spec = self.spec()
        spec["data"]["train"] = keys
        spec["model"].update(model)
        return self.job(spec)

    def good_images(self):
        return pathlib.Path(self.data["records"]).read_bytes()

    def images(self, name, content):
        """A job whose records are this content."""
        return self.data_job({**self.data, "records": str(self.file(name, content))})

    def labels(self, content):
        """A job whose labels are these bytes."""
        small_data.write_idx(pathlib.Path(self.data["labels"]), [len(content)], content)
        return self.job(self.spec())

    def table(self, *lines, layers=(), **keys):
        """A job on a CSV file with the columns x and y, which are numbers, and a class."""
        self.file("t.csv", "".join(line + "\n" for line in ("x,y,class", *lines)))
        return self.data_job({"format": "csv", "records": "t.csv", "csv": {"target": "class"}, **keys}, input=[2],
                             layers=[*layers, {"linear": {"out_features": 2}}])

    def picture(self, content):
        """A job on a folder with one picture."""
        self.file("pictures/cat/a.png", content)
        return self.data_job({"format": "image_folder", "records": "pictures"})

    def arrays(self, content):
        self.file("x.npy", content)
        return self.data_job({"format": "npy", "records": "x.npy", "labels": "x.npy"})

    def examples(self, content):
        self.file("r.tfrecord", content)
        return self.data_job({"format": "tfrecord", "records": "r.tfrecord",
                              "tfrecord": {"features": "x", "target": "y"}})

    def weights(self, tensors):
        """A job that starts from a weights file with these tensors: name -> shape."""
        content = {name: ("F32", shape, bytes(4 * shape[0] * (shape[1] if len(shape) > 1 else 1)))
                   for name, shape in tensors.items()}
        weights_file.write(self.folder / "w.safetensors", content)
        return self.job(self.spec(), "train.init_from=w.safetensors")


# ---- formats, as far as wrong files need them

def png(depth=8, content=bytes(5)):
    """A gray picture of 4 pixels: a filter byte, then one row."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">2I5B", 4, 1, depth, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(content)) + chunk(b"IEND", b"")


def npy(descr="<f4", shape=(RECORDS, 2), fortran=False, size=None):
    return small_data.npy(shape, bytes(4 * 2 * RECORDS if size is None else size), descr, fortran)


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(content):
    length = struct.pack("<Q", len(content))
    return length + masked_crc32c(length) + content + masked_crc32c(content)


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1:]


# ---- the job file

@case("an unknown key", "spec", "job.yaml:2", "learning_rate", "valid are")
def _(at):
    return at.job({"learning_rate": 0.1, **at.spec()})


@case("a misspelt key", "spec", "job.yaml:3", "epoch", 'did you mean "epochs"?')
def _(at):
    spec = at.spec()
    return at.job({"train": {"epoch": 3, **spec.pop("train")}, **spec})


@case("a key of another section", "spec", "job.yaml:2", "epochs", "train.epochs")
def _(at):
    return at.job({"epochs": 3, **at.spec()})


@case("a key that is written twice", "spec", "job.yaml:2", "name", "written twice")
def _(at):
    return at.job(json.dumps(at.spec()).replace("{", '{"name": "x",\n', 1))


@case("text where a number belongs", "spec", "train.epochs", "many", "an integer")
def _(at):
    return at.job(at.spec(), "train.epochs=many")


@case("a number where a section belongs", "spec", "job.yaml:", "cluster", "expected keys")
def _(at):
    return at.job({**at.spec(), "cluster": 3})


@case("a number in quotes", "spec", "job.yaml:3", "train.epochs", "in quotes")
def _(at):
    spec = at.spec()
    return at.job({"train": {**spec.pop("train"), "epochs": "3"}, **spec})


@case("an unknown layer", "spec", "job.yaml:", "liner", 'did you mean "linear"?')
def _(at):
    return at.layers_job("flatten", {"liner": {"out_features": 10}})


@case("a layer of no features", "spec", "job.yaml:", "out_features", "found 0")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 0}})


for override in ("train.epochs=0", "train.microbatch_size=0", "train.microbatches_per_step=-4", "cluster.workers=0",
                 "cluster.ps_shards=-1", "cluster.threads_per_worker=0", "train.optimizer.sgd.lr=-1",
                 "train.microbatch_size=1000000", "train.epochs=100000000000000000000", "cluster.workers=1e9"):
    @case(f"a size out of range, {override}", "spec", *override.split("="))
    def _(at, override=override):
        return at.job(at.spec(), override)


@case("a path of --set that does not exist", "spec", "--set train.epoks=3", 'did you mean "train.epochs"?')
def _(at):
    return at.job(at.spec(), "train.epoks=3")


@case("a --set without a value", "spec", "train.epochs", "path=value")
def _(at):
    return at.job(at.spec(), "train.epochs")


@case("a file that is no YAML", "spec", "job.yaml:", "not valid YAML")
def _(at):
    return at.job("name: [x\n")


@case("an empty file", "spec", "job.yaml", "is empty")
def _(at):
    return at.job("")


@case("a job file that is not there", "spec", "nowhere.yaml", "no such file")
def _(at):
    return [("train", "nowhere.yaml"), ("validate", "nowhere.yaml")]


@case("a folder in place of a job file", "spec", "not a file")
def _(at):
    return [("train", at.folder), ("validate", at.folder)]


@case("a job file that may not be read", "spec", "job.yaml", "Permission denied", as_nobody=True)
def _(at):
    commands = at.job(at.spec())
    (at.folder / "job.yaml").chmod(0)
    return commands


@case("a YAML bomb of anchors", "spec", "job.yaml:1", "anchors")
def _(at):
    return at.job("a: &a [lol, lol]\n" + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n"
                                                 for a, b in zip("abcdefgh", "bcdefghi")))


@case("a YAML bomb of brackets", "bomb", "job.yaml:1", "nested deeper than 32 levels")
def _(at):
    return at.job("[" * 1_000_000)


@case("a YAML bomb of values", "bomb", "job.yaml:", "more than 100000 values")
def _(at):
    return at.job("name: [" + "0," * 500_000 + "0]\n")


@case("a job file of 1 GB", "spec", "job.yaml", "larger than 1024 KiB")
def _(at):
    commands = at.job("name: x\n#")
    os.truncate(at.folder / "job.yaml", 1 << 30)
    return commands


@case("a job file of bytes", "spec", "job.yaml:1", "not UTF-8")
def _(at):
    return at.job(b"name: \xff\xfe\n")


# ---- shapes

@case("a layer that does not take images", "spec", "linear", "flatten")
def _(at):
    spec = at.spec("cnn_batch_norm")
    spec["model"]["layers"].remove("flatten")
    return at.job(spec)


@case("a window larger than the image", "spec", "max_pool2d", "40", "12")
def _(at):
    return at.layers_job({"max_pool2d": {"kernel_size": 40}}, "flatten", {"linear": {"out_features": 10}})


@case("shapes that cannot be added", "spec", "add", "64", "10")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 64}, "name": "wide"},
                         {"linear": {"out_features": 10}, "name": "narrow"}, {"add": {}, "inputs": ["wide", "narrow"]})


@case("a model of more parameters than memory holds", "spec", "linear", "parameters")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 1048576}}, {"linear": {"out_features": 1048576}},
                         {"linear": {"out_features": 10}})


@case("a model for other records", "data", "train-images", "28", "12")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 10}}, input=[1, 28, 28])


@case("more classes in the data than outputs", "data", "train-labels", "5")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 5}})


# ---- data

@case("a data file that is not there", "data", "nowhere", "No such file")
def _(at):
    return at.data_job({**at.data, "records": str(at.folder / "nowhere")})


@case("a folder in place of a data file", "data", "somewhere")
def _(at):
    (at.folder / "somewhere").mkdir()
    return at.data_job({**at.data, "records": str(at.folder / "somewhere")})


@case("a data file that may not be read", "data", "train-labels", "Permission denied", as_nobody=True)
def _(at):
    pathlib.Path(at.data["labels"]).chmod(0)
    return at.job(at.spec())


@case("a truncated gzip file", "data", "half.gz", "truncated", "byte")
def _(at):
    packed = gzip.compress(at.good_images())
    return at.images("half.gz", packed[:len(packed) // 2])


@case("a corrupt gzip file", "data", "bad.gz", "damaged gzip data", "byte")
def _(at):
    packed = gzip.compress(at.good_images())
    return at.images("bad.gz", flipped(packed, len(packed) // 2))


@case("a gzip file with a wrong checksum", "data", "bad.gz", "damaged gzip data")
def _(at):
    packed = gzip.compress(at.good_images())
    return at.images("bad.gz", flipped(packed, len(packed) - 8))


@case("a truncated IDX file", "data", "short", "truncated", "byte")
def _(at):
    return at.images("short", at.good_images()[:-1])


@case("an IDX file of something else", "data", "other", "not an IDX file")
def _(at):
    return at.images("other", b"no images" * 100)


@case("an IDX file of floats", "data", "floats", "32-bit floats")
def _(at):
    return at.images("floats", struct.pack(">4I", 0xD03, RECORDS, 12, 12) + bytes(RECORDS * 12 * 12 * 4))


@case("an IDX file that promises more than memory holds", "data", "huge", "byte")
def _(at):
    return at.images("huge", struct.pack(">4I", 0x803, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF))


@case("an IDX file without records", "data", "none", "there is nothing to train on")
def _(at):
    return at.images("none", struct.pack(">4I", 0x803, 0, 12, 12))


@case("more labels than records", "data", str(RECORDS), str(RECORDS + 1))
def _(at):
    return at.labels(bytes(RECORDS + 1))


@case("a label out of range", "data", "train-labels", "10", str(RECORDS - 1))
def _(at):
    return at.labels(bytes(RECORDS - 1) + b"\x0a")


@case("a CSV file with a bad cell", "data", "t.csv", "line 3", "column y", "ten")
def _(at):
    return at.table("1,2,0", "1,ten,1")


@case("a CSV file with an empty cell", "data", "t.csv", "line 3", "column x")
def _(at):
    return at.table("1,2,0", ",2,1")


@case("a CSV file with a changed column count", "data", "t.csv", "line 3", "2 columns", "3")
def _(at):
    return at.table("1,2,0", "1,2")


@case("a CSV file with a quote that does not end", "data", "t.csv", "line 3")
def _(at):
    return at.table("1,2,0", '1,"2,1')


@case("a CSV file with a label out of range", "data", "t.csv", "record 1", "label 7")
def _(at):
    return at.table("1,2,0", "1,2,7")


@case("a CSV file with a number that an embedding has no row for", "data", "t.csv", "record 1", "place 1", "'words'", "0 to 2")
def _(at):
    return at.table("1,2,0", "7,3,1", layers=[{"name": "y", "select": {"first": 1, "count": 1}},
                                              {"name": "words", "embedding": {"num_embeddings": 3, "embedding_dim": 4}},
                                              "flatten"])


@case("a CSV file without a column that is named", "data", "t.csv", '"z"')
def _(at):
    return at.table("1,2,0", csv={"target": "z"})


@case("a CSV file without records", "data", "t.csv", "no records")
def _(at):
    return at.table()


@case("an empty CSV file", "data", "t.csv", "empty")
def _(at):
    commands = at.table()
    at.file("t.csv")
    return commands


@case("a truncated PNG picture", "data", "a.png", "PNG")
def _(at):
    return at.picture(png()[:40])


@case("a damaged PNG picture", "data", "a.png", "PNG", "byte")
def _(at):
    return at.picture(flipped(png(), 45))


@case("a PNG picture of 16 bits", "data", "a.png", "16 bits")
def _(at):
    return at.picture(png(16, bytes(9)))


@case("a text in place of a picture", "data", "a.png", "neither a PNG nor a JPEG")
def _(at):
    return at.picture(b"a picture of a cat")


@case("a folder without pictures", "data", "pictures")
def _(at):
    (at.folder / "pictures").mkdir()
    return at.data_job({"format": "image_folder", "records": "pictures"})


@case("a truncated TFRecord file", "data", "r.tfrecord", "byte 0", "truncated")
def _(at):
    return at.examples(bytes(11))


@case("a TFRecord file of something else", "data", "r.tfrecord", "checksum of its length")
def _(at):
    return at.examples(b"no records at all")


@case("a TFRecord file with a damaged record", "data", "r.tfrecord", "record 0", "its checksum does not match")
def _(at):
    return at.examples(flipped(tfrecord(bytes(20)), 15))


@case("a TFRecord file without the feature", "data", "r.tfrecord", "record 0", '"x"; it has none')
def _(at):
    return at.examples(tfrecord(b""))


@case("a truncated npy file", "data", "x.npy", "byte", "ends within its head")
def _(at):
    return at.arrays(npy()[:20])


@case("an npy file of another size", "data", "x.npy", "truncated", "there")
def _(at):
    return at.arrays(npy(size=100))


@case("an npy file of another type", "data", "x.npy", "<c8")
def _(at):
    return at.arrays(npy(descr="<c8"))


@case("an npy file in Fortran order", "data", "x.npy", "Fortran", "numpy.ascontiguousarray")
def _(at):
    return at.arrays(npy(fortran=True))


@case("more data than memory may be taken", "data", "t.csv", "data.memory_limit")
def _(at):
    commands = at.table(*["1,2,0"] * 1000)
    return [(*command, "--set", "data.memory_limit=4kB") for command in commands]


@case("more microbatches a step than data", "data", "train.microbatches_per_step", "4096", str(RECORDS))
def _(at):
    return at.job(at.spec(), "train.microbatches_per_step=4096")


@case("an unknown format", "spec", "data.train", "cvs")
def _(at):
    return at.table("1,2,0", format="cvs")


@case("a key of another format", "spec", "job.yaml:", "data.train.labels", "leave this out")
def _(at):
    return at.table("1,2,0", labels="y")


# ---- weights to start from

@case("weights of other names", "data", "'linear1.weight' [64, 144] is not in the file", "'head.bias' [64] is not in the model")
def _(at):
    return at.weights({"linear1.bias": [64], "head.bias": [64]})


@case("weights of other shapes", "data", "linear1.weight", "[64, 100]", "[64, 144]")
def _(at):
    return at.weights({"linear1.weight": [64, 100], "linear1.bias": [64], "linear4.weight": [10, 64], "linear4.bias": [10]})


@case("a truncated weights file", "data", "w.safetensors", "not a whole safetensors file")
def _(at):
    commands = at.weights({"linear1.bias": [64]})
    os.truncate(at.folder / "w.safetensors", 100)
    return commands


@case("a weights file that is not there", "data", "nowhere.safetensors", "No such file")
def _(at):
    return at.job(at.spec(), "train.init_from=nowhere.safetensors")


# ---- folders

def train_only(commands):
    return [command for command in commands if command[0] == "train"]


@case("the folder of another run", "folder", "run", "dlrun resume", "--run-dir")
def _(at):
    at.file("run/spec.yaml", "name: x\n")
    return train_only(at.job(at.spec()))


@case("a run folder that is not empty", "folder", "run", "not empty", "--run-dir")
def _(at):
    at.file("run/precious", "mine")
    return train_only(at.job(at.spec()))


@case("a run folder that is a file", "folder", "run")
def _(at):
    at.file("run", "mine")
    return train_only(at.job(at.spec()))


@case("a run folder that may not be written", "folder", "run", "Permission denied", "--run-dir", as_nobody=True)
def _(at):
    at.run_dir.mkdir()
    at.run_dir.chmod(0o555)
    return train_only(at.job(at.spec()))


@case("a run folder in a folder that may not be written", "folder", "run", "Permission denied", "--run-dir", as_nobody=True)
def _(at):
    at.run_dir = at.folder / "locked/run"
    at.run_dir.parent.mkdir(mode=0o555)
    return train_only(at.job(at.spec()))


@case("a template in a folder that may not be written", "folder", "locked/job.yaml", "Permission denied", as_nobody=True)
def _(at):
    (at.folder / "locked").mkdir(mode=0o555)
    return [("init", "mlp", "locked/job.yaml")]


@case("a template in a folder that is not there", "folder", "nowhere")
def _(at):
    return [("init", "mlp", "nowhere/job.yaml")]


@case("a verb on what is no run folder", "folder", "is not the folder of a run")
def _(at):
    return [(verb, folder) for verb in ("status", "stop", "logs", "events", "export", "resume")
            for folder in (at.folder, at.folder / "nowhere")]


@case("a verb that does not exist", "folder", "trian", 'did you mean "train"?')
def _(at):
    return [("trian", "job.yaml")]


@case("a model that is not there", "folder", "neither the folder of a run nor a weights file")
def _(at):
    return [("evaluate", "nowhere"), ("predict", "nowhere", "--input", "nowhere.csv")]


# ---- carrying them out

@dataclasses.dataclass
class refusal:
    """What a command came to. `left`: files that were made or changed, and processes."""

    command: tuple
    code: int
    stdout: str
    stderr: str
    ms: float
    left: list

    def problems(self, one):
        """Everything that makes it no clean refusal of this case, but for the time it took."""
        if self.code != BAD_USAGE:
            yield f"exit code {self.code}"
        if self.stdout:
            yield f"says on stdout: {self.stdout.strip()}"
        lines = self.stderr.splitlines()
        if not self.stderr.startswith("dlrun: ") or self.stderr.count("dlrun: ") != 1 or len(lines) > LINES_MAX:
            yield f"not one message, but {len(lines)} lines: {self.stderr.strip()}"
        if INTERNAL.search(self.stderr):
            yield f"tells internals: {self.stderr.strip()}"
        for word in one.words:
            if word not in self.stderr:
                yield f"does not name '{word}': {self.stderr.strip()}"
        if self.left:
            yield f"leaves behind {', '.join(self.left)}"


def contents(folder):
    """Everything in it: path -> what changes when it is written to."""
    found = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_mtime_ns if path.is_file() else 0,
                                                facts.st_size if path.is_file() else 0)
    return found


def processes_of(session):
    """What still runs of a session that began with our process."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    facts = {pid: dlrun_job.stat_fields(pid) for pid in pids}
    return [f"process {pid}" for pid, one in facts.items() if one and one["session"] == session and one["state"] not in "ZX"]


def unprivileged(program, folder):
    """The program where nobody may run it, and how to: as root, since root may write everywhere."""
    if os.geteuid() != 0:
        return program, {}
    folder.chmod(0o755)
    copy = shutil.copy(program, folder / "dlrun")
    return copy, {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def refusal_of(program, command, folder, identity):
    """Runs a command, and looks at what it leaves."""
    before, begin = contents(folder), time.monotonic()
    process = subprocess.Popen([program, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, cwd=folder, start_new_session=True, **identity)
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
    ms, after = (time.monotonic() - begin) * 1000, contents(folder)
    left = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return refusal(command, process.returncode, stdout, stderr, ms, left + processes_of(process.pid))


def carry_out(program, one, folder):
    """Runs the commands of a case in an empty folder; once more while one was slow. @returns a refusal for each"""
    at, refusals = workplace(folder), []
    commands = one.make(at)
    program, identity = unprivileged(program, at.folder) if one.as_nobody else (program, {})
    for command in commands:
        for _ in range(ATTEMPTS):
            found = refusal_of(program, command, at.folder, identity)
            if found.ms <= MS_MAX[one.kind] or found.left:
                break
        refusals.append(found)
    return refusals
