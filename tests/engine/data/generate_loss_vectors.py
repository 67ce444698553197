#!/usr/bin/python3
"""Writes pytorch_loss_vectors.hpp: losses and their gradients as PyTorch computes them.

Run with an interpreter that has torch (written with 1.13, CPU):
    python3 tests/engine/data/generate_loss_vectors.py > tests/engine/data/pytorch_loss_vectors.hpp
"""
import torch
import torch.nn.functional as F

torch.manual_seed(21)
torch.set_num_threads(1)


def emit(name, tensor):
    values = [f"{v:.9g}" for v in tensor.detach().reshape(-1).tolist()]
    values = [(v if "." in v or "e" in v else v + ".0") + "F" for v in values]
    print(f"inline const std::vector<float> {name} = {{{', '.join(values)}}};")


def loss(name, outputs, compute):
    """The loss, and its gradient by the outputs."""
    outputs = outputs.clone().requires_grad_()
    value = compute(outputs)
    value.backward()
    emit(f"{name}_loss", value.reshape(1))
    emit(f"{name}_gradient", outputs.grad)


def classes():
    scores, labels = torch.randn(6, 4) * 3, torch.tensor([1, 3, 0, 0, 2, 1])
    weight = torch.tensor([0.5, 2.0, 1.0, 3.0])
    emit("scores", scores)
    emit("class_weight", weight)
    for name, arguments in (("cross_entropy", {}), ("smoothed", {"label_smoothing": 0.1}), ("weighted", {"weight": weight}),
                            ("weighted_and_smoothed", {"weight": weight, "label_smoothing": 0.3})):
        loss(name, scores, lambda x, a=arguments: F.cross_entropy(x, labels, reduction="sum", **a))
    # What reduction="mean" would be: the sum divided by the labels' weights.
    emit("weighted_mean", F.cross_entropy(scores, labels, weight=weight).reshape(1))
    emit("weight_of_labels", weight[labels].sum().reshape(1))


def values():
    outputs, targets = torch.randn(5, 3) * 2, torch.randn(5, 3)
    targets[1] = outputs[1]  # a distance of nothing
    outputs[2, 0], targets[2, 0] = 4.0, 3.5
    yes = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0.25, 0, 1], [1, 0.5, 0], [0, 1, 0]])
    logits = torch.randn(5, 3) * 4
    logits[0, 1], logits[4, 2] = 90.0, -90.0
    pos_weight = torch.tensor([3.0, 0.5, 1.0])
    for name, tensor in (("outputs", outputs), ("targets", targets), ("logits", logits), ("yes", yes),
                         ("pos_weight", pos_weight)):
        emit(name, tensor)
    # Times the records: the engine sums over them.
    for name, compute in (("mse", F.mse_loss), ("l1", F.l1_loss), ("huber", F.huber_loss),
                          ("huber_wide", lambda x, y: F.huber_loss(x, y, delta=2.5))):
        loss(name, outputs, lambda x, f=compute: 5 * f(x, targets))
    bce = F.binary_cross_entropy_with_logits
    loss("bce", logits, lambda x: 5 * bce(x, yes))
    loss("bce_weighted", logits, lambda x: 5 * bce(x, yes, pos_weight=pos_weight))


print(f"/// Computed by PyTorch {torch.__version__.split('+')[0]}; written by generate_loss_vectors.py, not by hand.")
print("#pragma once\n\n#include <vector>\n\n// clang-format off\nnamespace dlrun::engine::pytorch_losses {")
classes()
values()
print("} // namespace dlrun::engine::pytorch_losses\n// clang-format on")
