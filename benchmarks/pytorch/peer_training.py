#!/usr/bin/python3
"""Trains a model of examples/fashion_mnist with PyTorch in one process: the other side of scripts/acceptance/accuracy.

Prints one line of JSON: the loss of each step, and the accuracy on the test records after the last epoch. The model's initial
weights are PyTorch's own for the seed; --write-weights keeps them, for dlrun to start from, under the names of the example.
"""
import argparse
import json
import pathlib
import sys

import torch

from peer_ddp import dataset
from peer_model import LEARNING_RATE, MOMENTUM, laid_out, network

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/integration"))
import weights_file

RECORDS_AT_ONCE = 250  # of an evaluation


class basic_block(torch.nn.Module):
    """Two 3x3 convolutions and a way around them (He et al. 2015); parts are named as torchvision names them."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        nn = torch.nn
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        around = self.downsample(x) if self.downsample else x
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + around)


class resnet18(torch.nn.Module):
    """With the 3x3 stem without pooling of examples/fashion_mnist/resnet18.yaml."""

    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.conv1, self.bn1 = nn.Conv2d(1, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        channels = 64
        for number, width in enumerate((64, 128, 256, 512), 1):
            blocks = [basic_block(channels, width, 1 if number == 1 else 2), basic_block(width, width, 1)]
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
            channels = width
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(x.mean((2, 3)))


def write_weights(file, module):
    """As safetensors."""
    tensors = {name: ("F32", list(value.shape), value.contiguous().numpy().tobytes())
               for name, value in module.state_dict().items() if value.is_floating_point()}
    weights_file.write(pathlib.Path(file), tensors)


def train(module, records, labels, chosen):
    """@returns the loss of each step"""
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    cross_entropy, losses = torch.nn.CrossEntropyLoss(), []
    for epoch in range(chosen.epochs):
        source = torch.Generator().manual_seed(1000 * chosen.seed + epoch)
        order = torch.arange(len(records)) if chosen.in_order else torch.randperm(len(records), generator=source)
        for batch in order.split(chosen.batch):
            optimizer.zero_grad(set_to_none=True)
            loss = cross_entropy(module(records[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@torch.no_grad()
def accuracy(module, records, labels):
    module.eval()
    hits = sum((module(part).argmax(1) == wanted).sum().item()
               for part, wanted in zip(records.split(RECORDS_AT_ONCE), labels.split(RECORDS_AT_ONCE)))
    return hits / len(records)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["mlp", "cnn", "resnet18"], required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128, help="records of a step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--in-order", action="store_true", help="records in the order of the file, not shuffled")
    parser.add_argument("--write-weights", metavar="FILE", help="initial weights, as safetensors")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    return parser.parse_args()


def main():
    chosen = arguments()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(chosen.seed)
    module = resnet18() if chosen.model == "resnet18" else network(chosen.model)
    if chosen.write_weights:
        write_weights(chosen.write_weights, module)
    if chosen.model != "mlp":
        module = laid_out(module, "channels-last")
    losses = train(module, *dataset(chosen.data), chosen)
    print(json.dumps({"losses": losses, "accuracy": accuracy(module, *dataset(chosen.data, "t10k")),
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
