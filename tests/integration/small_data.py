"""Small generated jobs: images that can be learned but not by heart, so that gradients never vanish."""

import copy
import gzip
import json
import math
import random
import struct

SIDE = 12
CLASSES = 10
FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
MODELS = {
    "mlp_dropout": ["flatten", {"linear": {"out_features": 64}}, "relu", {"dropout": {"p": 0.2}},
                    {"linear": {"out_features": 10}}],
    "cnn_batch_norm": [{"conv2d": {"out_channels": 8, "kernel_size": 3, "padding": 1, "bias": False}}, "batch_norm",
                       "relu", {"max_pool2d": {"kernel_size": 2}}, "flatten", {"linear": {"out_features": 10}}],
}


def idx(dimensions, content):
    """The bytes of an IDX file of unsigned bytes."""
    return struct.pack(f">I{len(dimensions)}I", 0x800 | len(dimensions), *dimensions) + content


def write_idx(path, dimensions, content):
    path.write_bytes(idx(dimensions, content))


def npy(shape, content, descr="<f4", fortran=False):
    """The bytes of a file of numpy.save."""
    head = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + content


def write_fashion_mnist(folder, name, records):
    """The first records of a part of Fashion-MNIST (train, t10k), in files of the same names."""
    for kind, shape in (("images-idx3", (28, 28)), ("labels-idx1", ())):
        with gzip.open(f"{FASHION_MNIST}/{name}-{kind}-ubyte.gz") as file:
            file.seek(len(idx([records, *shape], b"")))
            content = file.read(records * math.prod(shape))
        (folder / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(idx([records, *shape], content), 1))


def write_images(folder, name, records, seed=1):
    """A noisy prototype image for each class; one label in five is wrong. @returns the data section of a job."""
    source = random.Random(seed)
    prototypes = [bytes(source.choice((40, 180)) for _ in range(SIDE * SIDE)) for _ in range(CLASSES)]
    labels, images = bytearray(), bytearray()
    for _ in range(records):
        shown = source.randrange(CLASSES)
        noise = source.randbytes(SIDE * SIDE)
        images += bytes((a + 2 * b) // 3 for a, b in zip(prototypes[shown], noise))
        labels.append(shown if source.random() < 0.8 else source.randrange(CLASSES))
    write_idx(folder / f"{name}-images", [records, SIDE, SIDE], bytes(images))
    write_idx(folder / f"{name}-labels", [records], bytes(labels))
    return {"records": str(folder / f"{name}-images"), "labels": str(folder / f"{name}-labels"),
            "normalize": {"mean": 0.5, "std": 0.25}}


def make_spec(model, train, *, epochs=1, microbatches_per_step=4, workers=2, ps_shards=2, placement="processes"):
    """A job as a dictionary. Any number of restarts is allowed; tests of the budget set it."""
    return {
        "name": model.replace("_", "-"),
        "model": {"input": [1, SIDE, SIDE], "layers": copy.deepcopy(MODELS[model])},
        "data": {"train": dict(train)},
        "train": {"epochs": epochs, "microbatch_size": 8, "microbatches_per_step": microbatches_per_step,
                  "optimizer": {"sgd": {"lr": 0.02, "momentum": 0.9}}, "seed": 7},
        "cluster": {"workers": workers, "ps_shards": ps_shards, "placement": placement, "device": "cpu",
                    "restart": {"intensity": 1000, "period_s": 60}},
    }


def add_coupled_updates(spec):
    """Updates that depend on the gradients of all PS shards, on the step, and on state of two kinds."""
    spec["train"].update({"optimizer": {"adamw": {"lr": 0.004, "weight_decay": 0.05, "amsgrad": True}},
                          "lr_schedule": {"one_cycle": {"max_lr": 0.006}, "warmup_steps": 20},
                          "clip_norm": 0.5, "clip_value": 0.2})
    return spec


def write_spec(path, spec):
    """JSON is YAML."""
    path.write_text(json.dumps(spec, indent=1) + "\n")
    return path
