#!/usr/bin/python3
"""One PyTorch process that trains one batch over and over on a GPU: the other side of compare_gpu. Prints one line of JSON.

`bare` is forward and backward pass with the records brought to the GPU; `worker` also brings the parameters there and the gradients
back, as a worker of a parameter server does. fp32 means no TF32, in convolutions too, where PyTorch has it by default. bf16 is autocast: parameters and losses stay fp32.
"""
import argparse
import json
import time

import torch

from peer_model import WARM_UP_STEPS, network

IMAGES = {"mlp": (1, 28, 28, 10), "cnn": (1, 28, 28, 10), "resnet50": (3, 224, 224, 1000)}  # and classes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=IMAGES, required=True)
    parser.add_argument("--batch", type=int, default=128, help="records of a step")
    parser.add_argument("--seconds", type=float, default=3, help="how long")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--mode", choices=["eager", "channels-last", "compile"], default="eager")
    return parser.parse_args()


def made(chosen):
    torch.manual_seed(1)
    if chosen.model == "resnet50":
        import torchvision  # only this model needs it
        module = torchvision.models.resnet50()
    else:
        module = network(chosen.model)
    module = module.cuda()
    if chosen.mode == "channels-last":
        module = module.to(memory_format=torch.channels_last)
    return torch.compile(module, dynamic=False) if chosen.mode == "compile" else module


def throughput(chosen, step):
    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    steps, started = 0, time.monotonic()
    while time.monotonic() - started < chosen.seconds:
        step()
        torch.cuda.synchronize()
        steps += 1
    return steps * chosen.batch / (time.monotonic() - started)


def main():
    chosen = arguments()
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.deterministic = True  # as dlrun
    torch.backends.cudnn.benchmark = False
    module = made(chosen)
    *image, classes = IMAGES[chosen.model]
    records = (torch.rand(chosen.batch, *image) - 0.5).pin_memory()
    labels = torch.randint(classes, (chosen.batch,)).pin_memory()
    cross_entropy = torch.nn.CrossEntropyLoss(reduction="sum")
    parameters = list(module.parameters())
    on_host = [torch.empty(one.shape, pin_memory=True) for one in parameters]

    def bare():
        for one in parameters:
            one.grad = None
        there = records.cuda(non_blocking=True)
        if chosen.mode == "channels-last":
            there = there.to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=chosen.precision == "bf16"):
            loss = cross_entropy(module(there), labels.cuda(non_blocking=True))
        loss.backward()

    def worker():
        with torch.no_grad():
            for one, value in zip(parameters, on_host):
                one.copy_(value, non_blocking=True)
        bare()
        for one, value in zip(parameters, on_host):
            value.copy_(one.grad, non_blocking=True)

    with torch.no_grad():
        for one, value in zip(parameters, on_host):
            value.copy_(one)
    # worker() leaves gradients in on_host: what they are as parameters is of no matter to the time.
    print(json.dumps({"model": chosen.model, "batch": chosen.batch, "bare": throughput(chosen, bare),
                      "worker": throughput(chosen, worker), "device": torch.cuda.get_device_name(), "torch": torch.__version__,
                      "cudnn": torch.backends.cudnn.version()}))


if __name__ == "__main__":
    main()
