#!/usr/bin/python3
"""One PyTorch process that trains one batch over and over on one thread: the other side of compare_engine. Prints samples/s."""
import argparse
import time

import torch

from peer_environment import MODES
from peer_model import WARM_UP_STEPS, compiled, laid_out, momentum_sgd, network


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["mlp", "cnn"], required=True)
    parser.add_argument("--batch", type=int, default=128, help="records of a step")
    parser.add_argument("--seconds", type=float, default=3, help="how long")
    parser.add_argument("--mode", choices=MODES["cnn"], default="eager", help="layout of images; compiled or not")
    return parser.parse_args()


def main():
    chosen = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    module = laid_out(network(chosen.model), chosen.mode)
    records = laid_out(torch.rand(chosen.batch, 1, 28, 28) - 0.5, chosen.mode)
    labels = torch.randint(10, (chosen.batch,))
    optimizer = momentum_sgd(module)
    cross_entropy = torch.nn.CrossEntropyLoss()
    module = compiled(module, chosen.mode)

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
