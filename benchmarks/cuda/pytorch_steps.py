#!/usr/bin/python3
"""PyTorch's times for the products and convolutions of step_throughput, in its words: one line of JSON for each.

Single precision without TF32, then bf16, with deterministic algorithms, channels last; medians of 9 times of as many runs as take about 5 ms.
"""
import argparse
import json
import statistics
import time

PRODUCTS = [(4096, 4096, 4096), (64, 512, 784), (512, 1024, 1024)]
CONVOLUTIONS = [(64, 3, 224, 64, 7, 2, 3), (64, 64, 56, 64, 3, 1, 1), (64, 256, 14, 256, 3, 1, 1), (64, 256, 56, 64, 1, 1, 0),
                (64, 16, 28, 32, 3, 1, 1)]


def timed(torch, call, runs):
    begin = time.perf_counter()
    for _ in range(runs):
        call()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def seconds(torch, call):
    timed(torch, call, 2)
    runs = max(1, min(1000, int(0.005 / max(timed(torch, call, 1), 1e-6))))
    return statistics.median(timed(torch, call, runs) / runs for _ in range(9))


def report(torch, name, operations, call):
    taken = seconds(torch, call)
    print(json.dumps({"step": name, "us": round(taken * 1e6, 1), "TFLOP/s": round(operations / taken / 1e12, 2)}), flush=True)


def products(torch, prefix, random):
    for m, n, k in PRODUCTS:
        a, b, row = random(m, k), random(n, k), random(n)
        report(torch, f"{prefix}product {m}x{n}x{k}", 2 * m * n * k, lambda: torch.nn.functional.linear(a, b, row))


def convolutions(torch, prefix, random):
    for batch, inside, size, outside, kernel, stride, padding in CONVOLUTIONS:
        x = random(batch, inside, size, size).to(memory_format=torch.channels_last)
        w = random(outside, inside, kernel, kernel).to(memory_format=torch.channels_last)
        y = torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)
        operations = 2 * y.numel() * kernel * kernel * inside
        name = f"{prefix}convolution {batch}x{inside}x{size}x{size} to {outside} kernel {kernel} stride {stride}"
        report(torch, f"{name} forward", operations, lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=padding))
        for which, mask in (("backward_data", [True, False, False]), ("backward_weights", [False, True, False])):
            report(torch, f"{name} {which}", operations, lambda: torch.ops.aten.convolution_backward(
                y, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, mask))


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    import torch  # only now: --help works without it
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    print(json.dumps({"device": torch.cuda.get_device_name(), "libraries": f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"}))
    for prefix, number in (("", torch.float32), ("bf16 ", torch.bfloat16)):
        def random(*shape, of=number):
            return torch.randn(*shape, device="cuda", dtype=of)

        products(torch, prefix, random)
        convolutions(torch, prefix, random)


if __name__ == "__main__":
    main()
