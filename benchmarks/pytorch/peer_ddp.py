#!/usr/bin/python3
"""One rank of PyTorch DistributedDataParallel training on Fashion-MNIST: the other side of compare_ddp and compare_memory.

peer_ranks starts one process a rank and sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 prints one line of
JSON: the records trained, the seconds that took, the last loss, its peak memory. The clock runs from a barrier after
everything is loaded and built, and some steps to warm up, to a barrier after the last step; every epoch uses every record.
"""
import argparse
import datetime
import gzip
import json
import os
import resource
import time

import numpy
import torch

from peer_environment import MODES
from peer_model import WARM_UP_STEPS, compiled, laid_out, momentum_sgd, network

MEAN, STD = 0.2860, 0.3530


def idx(folder, name, header):
    with gzip.open(os.path.join(folder, name)) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def dataset(folder, part="train"):
    images = idx(folder, f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).astype(numpy.float32)
    labels = idx(folder, f"{part}-labels-idx1-ubyte.gz", 8).astype(numpy.int64)
    return torch.from_numpy((images / 255.0 - MEAN) / STD), torch.from_numpy(labels)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["mlp", "cnn"], required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128, help="records of a rank in a step")
    parser.add_argument("--mode", choices=MODES["cnn"], default="eager", help="layout of images; compiled or not")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    return parser.parse_args()


def join_ranks(timeout_s=None):
    """With one thread, from the same numbers in all. @param timeout_s of each collective operation; None: PyTorch's default
    @returns rank, how many there are."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", timeout=timeout_s and datetime.timedelta(seconds=timeout_s))
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def main():
    chosen = arguments()
    rank, world = join_ranks()
    x, y = dataset(chosen.data)
    module, x = laid_out(network(chosen.model), chosen.mode), laid_out(x, chosen.mode)
    ddp = torch.nn.parallel.DistributedDataParallel(module)
    optimizer = momentum_sgd(ddp)
    ddp = compiled(ddp, chosen.mode)
    cross_entropy = torch.nn.CrossEntropyLoss()

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = cross_entropy(ddp(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
        return loss

    last = (len(x) // world) % chosen.batch  # the last batch of an epoch is compiled before the clock runs, too
    for size in [chosen.batch] * WARM_UP_STEPS + [last] * (last > 0):
        step(torch.arange(size))
    torch.distributed.barrier()
    started, cpu_started = time.monotonic(), time.process_time()
    for epoch in range(chosen.epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))[rank::world]
        for batch in order.split(chosen.batch):
            loss = step(batch)
    torch.distributed.barrier()
    if rank == 0:
        print(json.dumps({"records": len(x) * chosen.epochs, "seconds": time.monotonic() - started,
                          "cpu_seconds": (time.process_time() - cpu_started) * world, "loss": loss.item(),
                          "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
