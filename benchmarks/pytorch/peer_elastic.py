#!/usr/bin/python3
"""One rank under torchrun that survives kills as PyTorch's elastic training does: all ranks restart from the newest checkpoint.

The other side of compare_kills and compare_host_losses. Into --folder goes: `rank-N`, the process of each rank; `steps`, how many
steps of the training are done and of how many ranks the last one was, by rank 0 after each; `checkpoint`, written to a new name
and renamed.
"""
import argparse
import os
import pathlib

import torch

from peer_ddp import dataset, join_ranks
from peer_environment import MODES
from peer_model import compiled, laid_out, momentum_sgd, network


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["mlp", "cnn"], required=True)
    parser.add_argument("--batch", type=int, default=128, help="records of a rank in a step")
    parser.add_argument("--mode", choices=MODES["cnn"], default="eager", help="layout of images; compiled or not")
    parser.add_argument("--checkpoint-every", type=int, required=True, metavar="STEPS", help="0: at the end of each epoch")
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--timeout", type=float, metavar="S", help="of each collective operation (default: PyTorch's)")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    return parser.parse_args()


def replace(file, write):
    """The file is the old one or the new one, whenever the process dies."""
    new = file.with_suffix(f".new-{os.getpid()}")
    write(new)
    new.replace(file)


def main():
    chosen = arguments()
    rank, world = join_ranks(chosen.timeout)
    replace(chosen.folder / f"rank-{rank}", lambda file: file.write_text(str(os.getpid())))
    x, y = dataset(chosen.data)
    raw = network(chosen.model)
    module, x = laid_out(raw, chosen.mode), laid_out(x, chosen.mode)
    optimizer = momentum_sgd(module)
    done, checkpoint = 0, chosen.folder / "checkpoint"
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        module.load_state_dict(saved["module"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["done"]
    ddp = compiled(torch.nn.parallel.DistributedDataParallel(module), chosen.mode)
    cross_entropy = torch.nn.CrossEntropyLoss()
    steps = len(x) // world // chosen.batch  # of an epoch; what fills no batch is left out
    every = chosen.checkpoint_every or steps
    with open(chosen.folder / "steps", "a", buffering=1) as told:
        while True:
            order = torch.randperm(len(x), generator=torch.Generator().manual_seed(done // steps))[rank::world]
            for batch in order.split(chosen.batch)[done % steps:steps]:
                optimizer.zero_grad(set_to_none=True)
                cross_entropy(ddp(x[batch]), y[batch]).backward()
                optimizer.step()
                done += 1
                if rank == 0:
                    told.write(f"{done} {world}\n")
                if rank == 0 and done % every == 0:
                    state = {"module": module.state_dict(), "optimizer": optimizer.state_dict(), "done": done}
                    replace(checkpoint, lambda file: torch.save(state, file))


if __name__ == "__main__":
    main()
