#!/usr/bin/python3
"""Writes loss_curve_<curve>.txt for each of CURVES: the losses of PyTorch's first 100 steps.

The initial weights and the order of the records come from the test program, which compares its own losses with these:
    /usr/bin/python3 tests/engine/data/generate_loss_curves.py build/release/bin/loss_curve_test
Needs the Debian packages python3-torch (written with 1.13) and dataset-fashion-mnist.
"""
import gzip
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
BATCH, MEAN, STD, MOMENTUM = 128, 0.2860, 0.3530, 0.9
# curve -> model, learning rate
CURVES = {"mlp": ("mlp", 0.05), "cnn": ("cnn", 0.05), "cnn_small_rate": ("cnn", 0.001)}


def idx(name, header):
    with gzip.open(DATA / name) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def networks():
    nn = torch.nn
    return {
        "mlp": nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                             nn.Linear(512, 10)),
        "cnn": nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10)),
    }


@torch.no_grad()
def load_weights(network, folder, name):
    """Both sides list the tensors in layer order; shapes are compared."""
    flat = numpy.fromfile(folder / f"{name}.parameters.f32", numpy.float32)
    lines = (folder / f"{name}.tensors.txt").read_text().splitlines()
    parameters = list(network.parameters())
    assert len(lines) == len(parameters), (lines, len(parameters))
    for line, parameter in zip(lines, parameters):
        offset, *shape = map(int, line.split()[1:])
        assert shape == list(parameter.shape), (line, parameter.shape)
        parameter.copy_(torch.from_numpy(flat[offset:offset + parameter.numel()].reshape(shape)))


def train(network, rate, x, y, order):
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=MOMENTUM)
    losses = []
    for batch in order.reshape(-1, BATCH):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    x = idx("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).astype(numpy.float32)
    x = torch.from_numpy((x / 255.0 - MEAN) / STD)
    y = torch.from_numpy(idx("train-labels-idx1-ubyte.gz", 8).astype(numpy.int64))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], "--dump-inputs", folder], check=True)
        folder = pathlib.Path(folder)
        for curve, (name, rate) in CURVES.items():
            network = networks()[name]
            load_weights(network, folder, name)
            order = numpy.fromfile(folder / f"{name}.records.u32", numpy.uint32).astype(numpy.int64)
            losses = train(network, rate, x, y, torch.from_numpy(order))
            (HERE / f"loss_curve_{curve}.txt").write_text("".join(f"{loss:.9g}\n" for loss in losses))
    # The test prints the first and the largest relative difference of each.
    sys.exit(subprocess.run([sys.argv[1], "--gtest_filter=*pytorch*"]).returncode)


if __name__ == "__main__":
    main()
