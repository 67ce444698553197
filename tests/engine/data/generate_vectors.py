#!/usr/bin/python3
"""Writes pytorch_vectors.hpp: what PyTorch computes, for tests to hold the engine against.

Run with an interpreter that has torch (written with 1.13, CPU):
    python3 tests/engine/data/generate_vectors.py > tests/engine/data/pytorch_vectors.hpp
"""
import torch

torch.manual_seed(20)
torch.set_num_threads(1)


def emit(name, tensor):
    values = [f"{v:.9g}" for v in tensor.detach().reshape(-1).tolist()]
    values = [(v if "." in v or "e" in v else v + ".0") + "F" for v in values]
    print(f"inline const std::vector<float> {name} = {{{', '.join(values)}}};")


def optimizers():
    start, gradients = torch.randn(8), torch.randn(5, 8)
    gradients[2] *= 1e-4
    emit("optimizer_start", start)
    emit("optimizer_gradients", gradients)
    makers = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.99), eps=1e-6),
        "adam_defaults": lambda p: torch.optim.Adam(p),
    }
    for name, maker in makers.items():
        parameter = torch.nn.Parameter(start.clone())
        optimizer = maker([parameter])
        after = []
        for gradient in gradients:
            parameter.grad = gradient.clone()
            optimizer.step()
            after.append(parameter.detach().clone())
        emit(f"{name}_parameters", torch.stack(after))


def batch_norm(name, layer, x):
    torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
    torch.nn.init.uniform_(layer.bias, -0.5, 0.5)
    x.requires_grad_()
    y, dy = layer(x), torch.randn_like(x)
    y.backward(dy)
    for part, tensor in (("x", x), ("weight", layer.weight), ("bias", layer.bias), ("y", y), ("dy", dy), ("dx", x.grad),
                         ("dweight", layer.weight.grad), ("dbias", layer.bias.grad),
                         ("running_mean", layer.running_mean), ("running_var", layer.running_var)):
        emit(f"{name}_{part}", tensor)
    emit(f"{name}_eval_y", layer.eval()(x))


def network():
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(27, 4))
    x, labels = torch.randn(3, 2, 6, 6), torch.tensor([1, 3, 0])
    loss = nn.functional.cross_entropy(model(x), labels, reduction="sum")
    loss.backward()
    emit("network_records", x)
    emit("network_loss", loss.reshape(1))
    for name, parameter in model.named_parameters():
        emit("network_" + name.replace(".", "_"), parameter)
        emit("network_" + name.replace(".", "_") + "_gradient", parameter.grad)
    emit("network_1_running_mean", model[1].running_mean)
    emit("network_1_running_var", model[1].running_var)
    emit("network_eval_loss", nn.functional.cross_entropy(model.eval()(x), labels, reduction="sum").reshape(1))


print(f"/// Computed by PyTorch {torch.__version__.split('+')[0]}; written by generate_vectors.py, not by hand.")
print("#pragma once\n\n#include <vector>\n\n// clang-format off\nnamespace dlrun::engine::pytorch {")
optimizers()
batch_norm("batch_norm_1d", torch.nn.BatchNorm1d(4), torch.randn(6, 4) * 2 + 1)
batch_norm("batch_norm_2d", torch.nn.BatchNorm2d(3, momentum=0.3), torch.randn(2, 3, 2, 3) * 3 - 2)
network()
print("} // namespace dlrun::engine::pytorch\n// clang-format on")
