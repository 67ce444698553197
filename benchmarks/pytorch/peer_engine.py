#!/usr/bin/python3
"""One process of PyTorch that trains on one batch in memory: the other side of compare_engine.

Prints samples a second of forward pass, backward pass and update (SGD with momentum, all tensors in one call where this
PyTorch has that), after a warm-up, on one thread.
"""
import argparse
import time

import torch

from peer_ddp import LEARNING_RATE, MOMENTUM, network

WARM_UP_STEPS = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["mlp", "cnn"], required=True)
    parser.add_argument("--batch", type=int, default=128, help="records of a step")
    parser.add_argument("--seconds", type=float, default=3, help="how long")
    parser.add_argument("--channels-last", action="store_true", help="images in that layout")
    return parser.parse_args()


def main():
    chosen = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    module, records = network(chosen.model), torch.rand(chosen.batch, 1, 28, 28) - 0.5
    if chosen.channels_last:
        module = module.to(memory_format=torch.channels_last)
        records = records.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(10, (chosen.batch,))
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, foreach=True)
    cross_entropy = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(module(records), labels).backward()
        optimizer.step()

    for _ in range(WARM_UP_STEPS):
        step()
    steps, started = 0, time.monotonic()
    while time.monotonic() - started < chosen.seconds:
        step()
        steps += 1
    print(steps * chosen.batch / (time.monotonic() - started))


if __name__ == "__main__":
    main()
