"""A wrong input: how to make it, and what its refusal must name. The lists of them are bad_inputs_*.py."""

import dataclasses
import pathlib
import typing

import dlrun_job
import small_data
import weights_file

RECORDS = 203
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
