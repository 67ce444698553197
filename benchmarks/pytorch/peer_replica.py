#!/usr/bin/python3
"""One replica group of torchft, of one process: the others go on without it when it dies, and it takes their state when it is back.

Of compare_kills and compare_host_losses. Gradients are averaged by the manager in one piece: with torchft 0.2.0 on gloo the replica that survives a death
ends too when torchft's DistributedDataParallel averages them (an assertion in its hook). Into --folder goes: `replica-N`, the process of each replica; `batches-N`, how many batches were committed by
all replicas together, as torchft counts them, a line for each step of this one.
"""
import argparse
import datetime
import os
import pathlib

import torch
import torchft

from peer_ddp import dataset
from peer_environment import MODES
from peer_model import compiled, laid_out, momentum_sgd, network


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["mlp", "cnn"], required=True)
    parser.add_argument("--batch", type=int, default=128, help="records of a replica in a step")
    parser.add_argument("--mode", choices=MODES["cnn"], default="eager", help="layout of images; compiled or not")
    parser.add_argument("--replica", type=int, required=True, metavar="N")
    parser.add_argument("--replicas", type=int, default=2, metavar="N", help="of which each has its own share of the records (default: 2)")
    parser.add_argument("--address", default="127.0.0.1", help="at which the others reach this one (default: 127.0.0.1)")
    parser.add_argument("--lighthouse", required=True, metavar="URL")
    parser.add_argument("--timeout", type=float, required=True, metavar="S", help="of each collective operation")
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    return parser.parse_args()


def average(manager, parameters):
    """Of all replicas; a failure is the manager's to judge, when the step is to be committed."""
    flat = torch.cat([one.grad.reshape(-1) for one in parameters])
    manager.allreduce(flat).wait()
    for one, averaged in zip(parameters, flat.split([one.numel() for one in parameters])):
        one.grad.copy_(averaged.view_as(one.grad))


def main():
    chosen = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    (chosen.folder / f"replica-{chosen.replica}").write_text(str(os.getpid()))
    x, y = dataset(chosen.data)
    module, x = laid_out(network(chosen.model), chosen.mode), laid_out(x, chosen.mode)
    inner = momentum_sgd(module)
    store = torch.distributed.TCPStore(chosen.address, 0, is_master=True, wait_for_workers=False)
    timeout = datetime.timedelta(seconds=chosen.timeout)

    def load(state):
        module.load_state_dict(state["module"])
        inner.load_state_dict(state["optimizer"])

    manager = torchft.Manager(pg=torchft.ProcessGroupGloo(timeout=timeout), min_replica_size=1, load_state_dict=load, timeout=timeout,
                              state_dict=lambda: {"module": module.state_dict(), "optimizer": inner.state_dict()},
                              replica_id=f"replica_{chosen.replica}", lighthouse_addr=chosen.lighthouse, store_addr=chosen.address,
                              store_port=store.port, rank=0, world_size=1)
    model, parameters = compiled(module, chosen.mode), list(module.parameters())
    optimizer = torchft.Optimizer(manager, inner)
    cross_entropy = torch.nn.CrossEntropyLoss()
    with open(chosen.folder / f"batches-{chosen.replica}", "a", buffering=1) as told:
        for epoch in range(1_000_000):
            order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))[chosen.replica::chosen.replicas]
            for batch in order.split(chosen.batch)[:len(x) // chosen.replicas // chosen.batch]:
                optimizer.zero_grad()
                cross_entropy(model(x[batch]), y[batch]).backward()
                average(manager, parameters)
                optimizer.step()
                told.write(f"{manager.batches_committed()}\n")


if __name__ == "__main__":
    main()
