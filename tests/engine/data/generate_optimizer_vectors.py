#!/usr/bin/python3
"""Writes pytorch_optimizer_vectors.hpp: updates, learning rates and clipped gradients as PyTorch makes them.

Run with an interpreter that has torch (written with 1.13, CPU):
    python3 tests/engine/data/generate_optimizer_vectors.py > tests/engine/data/pytorch_optimizer_vectors.hpp
"""
import warnings

import torch
from torch.optim import lr_scheduler

STEPS, SIZE = 6, 19
RATES = 50
STEPS_PER_EPOCH = 4

OPTIMIZERS = {
    "sgd { lr: 0.1 weight_decay: 0.05 }": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05),
    "sgd { lr: 0.05 momentum: 0.8 dampening: 0.3 }": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, dampening=0.3),
    "sgd { lr: 0.05 momentum: 0.9 nesterov: true weight_decay: 0.01 }":
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam { lr: 0.01 betas: [0.8, 0.99] eps: 1e-6 weight_decay: 0.1 }":
        lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1),
    "adam { lr: 0.02 betas: [0.7, 0.9] amsgrad: true }":
        lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.7, 0.9), amsgrad=True),
    "adamw {}": torch.optim.AdamW,
    "adamw { lr: 0.02 betas: [0.7, 0.9] weight_decay: 0.2 amsgrad: true }":
        lambda p: torch.optim.AdamW(p, lr=0.02, betas=(0.7, 0.9), weight_decay=0.2, amsgrad=True),
    "adagrad {}": torch.optim.Adagrad,
    "adagrad { lr: 0.1 lr_decay: 0.05 weight_decay: 0.02 initial_accumulator_value: 0.3 eps: 1e-6 }":
        lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.05, weight_decay=0.02, initial_accumulator_value=0.3,
                                      eps=1e-6),
    "rmsprop {}": torch.optim.RMSprop,
    "rmsprop { lr: 0.02 alpha: 0.9 eps: 1e-6 weight_decay: 0.03 momentum: 0.7 }":
        lambda p: torch.optim.RMSprop(p, lr=0.02, alpha=0.9, eps=1e-6, weight_decay=0.03, momentum=0.7),
    "rmsprop { alpha: 0.9 centered: true }": lambda p: torch.optim.RMSprop(p, alpha=0.9, centered=True),
    "rmsprop { lr: 0.02 alpha: 0.9 weight_decay: 0.03 momentum: 0.7 centered: true }":
        lambda p: torch.optim.RMSprop(p, lr=0.02, alpha=0.9, weight_decay=0.03, momentum=0.7, centered=True),
}

SCHEDULES = {
    "": lambda o: lr_scheduler.ConstantLR(o, factor=1),
    "constant {}": lambda o: lr_scheduler.ConstantLR(o, factor=1),
    "step { step_size: 7 }": lambda o: lr_scheduler.StepLR(o, 7),
    "step { step_size: 3 gamma: 0.9 }": lambda o: lr_scheduler.StepLR(o, 3, gamma=0.9),
    "multi_step { milestones: [5, 6, 30] }": lambda o: lr_scheduler.MultiStepLR(o, [5, 6, 30]),
    "multi_step { milestones: [2, 20] gamma: 0.5 }": lambda o: lr_scheduler.MultiStepLR(o, [2, 20], gamma=0.5),
    "exponential { gamma: 0.93 }": lambda o: lr_scheduler.ExponentialLR(o, 0.93),
    "cosine {}": lambda o: lr_scheduler.CosineAnnealingLR(o, RATES),
    "cosine { t_max: 20 eta_min: 0.01 }": lambda o: lr_scheduler.CosineAnnealingLR(o, 20, eta_min=0.01),
    "one_cycle { max_lr: 0.7 }": lambda o: one_cycle(o, max_lr=0.7),
    "one_cycle { max_lr: 0.7 pct_start: 0.5 div_factor: 10 final_div_factor: 100 anneal_strategy: 'linear' }":
        lambda o: one_cycle(o, max_lr=0.7, pct_start=0.5, div_factor=10, final_div_factor=100,
                            anneal_strategy="linear"),
    "constant {} warmup_steps: 9 start_factor: 0.1":
        lambda o: lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=9),
    "step { step_size: 4 gamma: 0.8 } warmup_steps: 10":
        lambda o: chained(lr_scheduler.StepLR(o, 4, gamma=0.8), lr_scheduler.LinearLR(o, total_iters=10)),
    "exponential { gamma: 0.95 } warmup_steps: 1": lambda o: chained(lr_scheduler.ExponentialLR(o, 0.95),
                                                                     lr_scheduler.LinearLR(o, total_iters=1)),
}


def one_cycle(optimizer, **arguments):
    return lr_scheduler.OneCycleLR(optimizer, total_steps=RATES, cycle_momentum=False, **arguments)


def chained(*schedulers):
    return lr_scheduler.ChainedScheduler(list(schedulers))


def numbers(values, digits, suffix):
    texts = [f"{value:.{digits}g}" for value in values]
    return ", ".join((one if "." in one or "e" in one else one + ".0") + suffix for one in texts)


def floats(tensor):
    return numbers(tensor.detach().reshape(-1).tolist(), 9, "F")


def emit(name, tensor):
    print(f"inline const std::vector<float> {name} = {{{floats(tensor)}}};")


def trajectory(maker, start, gradients, clip=None):
    """The parameters after each step, one after the other."""
    parameters = [torch.nn.Parameter(one.clone()) for one in start]
    optimizer = maker(parameters)
    after = []
    for step in gradients:
        for parameter, gradient in zip(parameters, step):
            parameter.grad = gradient.clone()
        if clip:
            clip(parameters)
        optimizer.step()
        after.append(torch.cat([one.detach().clone() for one in parameters]))
    return torch.stack(after)


def updates():
    start, gradients = torch.randn(SIZE), torch.randn(STEPS, SIZE)
    gradients[2] *= 1e-4
    gradients[4] *= 30
    gradients[:, 3] = 0
    emit("update_start", start)
    emit("update_gradients", gradients)
    print("struct update_case { const char* specification; std::vector<float> parameters; };")
    print("inline const std::vector<update_case> update_cases = {")
    for specification, maker in OPTIMIZERS.items():
        print(f'  {{"{specification}", {{{floats(trajectory(maker, [start], [[g] for g in gradients]))}}}}},')
    print("};")


def rates():
    print(f"inline constexpr std::uint64_t rate_steps_per_epoch = {STEPS_PER_EPOCH};")
    print("/// Of a learning rate of 0.3, for steps 0, 1, ...; the same for epochs.")
    print("struct rate_case { const char* specification; std::vector<double> rates; };")
    print("inline const std::vector<rate_case> rate_cases = {")
    for specification, maker in SCHEDULES.items():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
        scheduler = maker(optimizer)
        sequence = []
        for _ in range(RATES):
            sequence.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if len(sequence) < RATES:
                scheduler.step()
        print(f'  {{"{specification}", {{{numbers(sequence, 17, "")}}}}},')
    print("};")


def clipped():
    """Two tensors, so that the norm is one over both."""
    start = [torch.randn(11), torch.randn(8)]
    gradients = [[torch.randn(11) * scale, torch.randn(8) * scale] for scale in (0.1, 1, 10, 0.01)]
    emit("clip_start", torch.cat(start))
    emit("clip_gradients", torch.stack([torch.cat(step) for step in gradients]))
    by_value = lambda p: torch.nn.utils.clip_grad_value_(p, 0.25)
    by_norm = lambda p: torch.nn.utils.clip_grad_norm_(p, 1.5)
    cases = {
        "optimizer { sgd { lr: 0.1 } } clip_value: 0.25": (lambda p: torch.optim.SGD(p, lr=0.1), by_value),
        "optimizer { sgd { lr: 0.1 } } clip_norm: 1.5": (lambda p: torch.optim.SGD(p, lr=0.1), by_norm),
        "optimizer { adamw { lr: 0.01 weight_decay: 0.1 } } clip_norm: 1.5":
            (lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1), by_norm),
        "optimizer { sgd { lr: 0.1 momentum: 0.9 weight_decay: 0.1 } } clip_value: 0.25 clip_norm: 0.75":
            (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
             lambda p: (by_value(p), torch.nn.utils.clip_grad_norm_(p, 0.75))),
    }
    print("struct clip_case { const char* specification; std::vector<float> parameters; };")
    print("inline const std::vector<clip_case> clip_cases = {")
    for specification, (maker, clip) in cases.items():
        print(f'  {{"{specification}", {{{floats(trajectory(maker, start, gradients, clip))}}}}},')
    print("};")


warnings.simplefilter("ignore")  # of PyTorch about its own defaults
torch.manual_seed(21)
torch.set_num_threads(1)
print(f"/// Computed by PyTorch {torch.__version__.split('+')[0]}; written by generate_optimizer_vectors.py, not by hand.")
print("#pragma once\n\n#include <cstdint>\n#include <vector>\n\n// clang-format off\nnamespace dlrun::engine::pytorch {")
updates()
rates()
clipped()
print("} // namespace dlrun::engine::pytorch\n// clang-format on")
