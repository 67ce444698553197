"""Wrong weights to start from."""

import os
import pickle
import struct

import weights_file
from bad_input_case import case

SHAPES = {"linear1.weight": [64, 144], "linear1.bias": [64], "linear4.weight": [10, 64], "linear4.bias": [10]}


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


for number in ("nan", "inf"):
    @case(f"weights that are {number}", "data", "w.safetensors", "'linear1.weight'", f"has {number} at [1, 2]")
    def _(at, number=number):
        commands = at.weights(SHAPES)
        _, tensors = weights_file.read(at.folder / "w.safetensors")
        dtype, shape, content = tensors["linear1.weight"]
        place = 4 * (144 + 2)
        tensors["linear1.weight"] = dtype, shape, content[:place] + struct.pack("<f", float(number)) + content[place + 4:]
        weights_file.write(at.folder / "w.safetensors", tensors)
        return commands


@case("weights of a pickle", "data", "w.pt", "a pickle", "not a safetensors file")
def _(at):
    at.file("w.pt", pickle.dumps({"linear1.bias": [0.0] * 64}, protocol=2))
    return at.job(at.spec(), "train.init_from=w.pt")


@case("an empty weights file", "data", "w.safetensors", "it is empty")
def _(at):
    at.file("w.safetensors")
    return at.job(at.spec(), "train.init_from=w.safetensors")


@case("a folder in place of a weights file", "data", "weights", "not a regular file")
def _(at):
    (at.folder / "weights").mkdir()
    return at.job(at.spec(), "train.init_from=weights")


@case("a pipe in place of a weights file", "data", "pipe", "not a regular file")
def _(at):
    os.mkfifo(at.folder / "pipe")
    return at.job(at.spec(), "train.init_from=pipe")
