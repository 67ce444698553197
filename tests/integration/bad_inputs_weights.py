"""Wrong weights to start from."""

import os

from bad_input_case import case


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
