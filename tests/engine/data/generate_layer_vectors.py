#!/usr/bin/python3
"""Writes pytorch_layer_vectors.hpp: what PyTorch computes for single layers, in float64 from values that are floats.

Run with an interpreter that has torch (written with 1.13, CPU):
    python3 tests/engine/data/generate_layer_vectors.py > tests/engine/data/pytorch_layer_vectors.hpp
"""
import torch
from torch import nn

torch.manual_seed(40)
torch.set_num_threads(1)

HEAD = """/// Computed by PyTorch {version}; written by generate_layer_vectors.py, not by hand.
#pragma once

#include "engine/shape.hpp"

#include <vector>

// clang-format off
namespace dlrun::engine::pytorch {{

/// One layer's passes. All values are (batch, ...) with channels first; parameters are in the order of the layer's.
struct layer_vectors {{
  const char* name;
  const char* specification;
  std::vector<shape> shapes; ///< of the inputs
  std::int64_t batch;
  std::vector<std::vector<float>> inputs, parameters;
  std::vector<float> output, output_gradient;
  std::vector<std::vector<float>> input_gradients, parameter_gradients;
}};

inline const std::vector<layer_vectors> layer_cases = {{"""


def rounded(*shape):
    """Random values that a float can hold, in float64."""
    return torch.randn(*shape).double()


def floats(tensor):
    values = [f"{v:.9g}" for v in tensor.detach().reshape(-1).float().tolist()]
    return "{" + ", ".join((v if "." in v or "e" in v else v + ".0") + "F" for v in values) + "}"


def many(tensors):
    return "{" + ", ".join(floats(t) for t in tensors) + "}"


def case(name, specification, compute, *shapes, batch=2, inputs=None):
    """`compute` is a module or a function of the inputs; its parameters are given random values."""
    parameters = list(compute.parameters()) if isinstance(compute, nn.Module) else []
    for parameter in parameters:
        parameter.data = rounded(*parameter.shape)
    inputs = inputs or [rounded(batch, *shape).requires_grad_() for shape in shapes]
    output = compute(*inputs)
    gradient = rounded(*output.shape)
    output.backward(gradient)
    learnt = [torch.zeros_like(x) if x.grad is None else x.grad for x in inputs]
    print(f'  {{"{name}", "{specification}",')
    print("   {" + ", ".join("{" + ", ".join(map(str, shape)) + "}" for shape in shapes) + f"}}, {batch},")
    print(f"   {many(inputs)}, {many(parameters)},")
    print(f"   {floats(output)}, {floats(gradient)},")
    print(f"   {many(learnt)}, {many(p.grad for p in parameters)}}},")


def pooling():
    case("avg_pool2d", "avg_pool2d { kernel_size: 2 }", nn.AvgPool2d(2), (2, 5, 4))
    case("avg_pool2d_padded", "avg_pool2d { kernel_size: 3 stride: 2 padding: 1 }", nn.AvgPool2d(3, 2, 1), (2, 4, 5))
    case("avg_pool2d_without_padding_in_the_count",
         "avg_pool2d { kernel_size: 3 stride: 2 padding: 1 count_include_pad: false }",
         nn.AvgPool2d(3, 2, 1, count_include_pad=False), (2, 4, 5))
    case("adaptive_avg_pool2d", "adaptive_avg_pool2d { output_size: 1 }", nn.AdaptiveAvgPool2d(1), (3, 4, 3))
    case("adaptive_avg_pool2d_overlapping", "adaptive_avg_pool2d { output_size: 3 }", nn.AdaptiveAvgPool2d(3), (2, 5, 2))


def convolutions():
    case("conv1d", "conv1d { out_channels: 3 kernel_size: 3 }", nn.Conv1d(2, 3, 3), (2, 6))
    case("conv1d_strided", "conv1d { out_channels: 2 kernel_size: 4 stride: 3 padding: 2 bias: false }",
         nn.Conv1d(3, 2, 4, stride=3, padding=2, bias=False), (3, 8))
    case("conv_transpose2d", "conv_transpose2d { out_channels: 3 kernel_size: 2 }", nn.ConvTranspose2d(2, 3, 2), (2, 2, 3))
    case("conv_transpose2d_strided",
         "conv_transpose2d { out_channels: 2 kernel_size: 3 stride: 2 padding: 1 output_padding: 1 }",
         nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1), (3, 2, 2))


def activations():
    for name, specification, module in (("gelu", "gelu {}", nn.GELU()), ("silu", "silu {}", nn.SiLU()),
                                        ("gelu_tanh", "gelu { approximate: 'tanh' }", nn.GELU(approximate="tanh")),
                                        ("sigmoid", "sigmoid {}", nn.Sigmoid()), ("tanh", "tanh {}", nn.Tanh()),
                                        ("leaky_relu", "leaky_relu {}", nn.LeakyReLU()),
                                        ("leaky_relu_steep", "leaky_relu { negative_slope: 0.3 }", nn.LeakyReLU(0.3))):
        x = torch.tensor([[-30, -6.5, -2, -0.75, -0.01, 0, 0.01, 0.75, 2, 6.5, 30]], dtype=torch.float32).double()
        case(name, specification, module, (11,), batch=1, inputs=[x.requires_grad_()])


def normalisations():
    case("layer_norm_of_vectors", "layer_norm {}", nn.LayerNorm(5), (5,))
    case("layer_norm_of_images", "layer_norm { eps: 0.01 }", nn.LayerNorm((2, 3, 2), eps=0.01), (2, 3, 2))
    case("layer_norm_of_pixels", "layer_norm { normalized_shape: [3, 4] }", nn.LayerNorm((3, 4)), (2, 3, 4))
    case("layer_norm_of_sequences", "layer_norm { normalized_shape: 4 elementwise_affine: false }",
         nn.LayerNorm(4, elementwise_affine=False), (3, 4))
    case("group_norm_of_images", "group_norm { num_groups: 2 }", nn.GroupNorm(2, 4), (4, 2, 3))
    case("group_norm_of_vectors", "group_norm { num_groups: 3 eps: 0.01 affine: false }",
         nn.GroupNorm(3, 6, eps=0.01, affine=False), (6,))


def joins():
    case("add", "add {}", lambda a, b: a + b, (2, 2, 2), (2, 2, 2))
    case("multiply_of_three", "multiply {}", lambda a, b, c: a * b * c, (2, 3), (2, 3), (2, 3))
    case("concat_of_vectors", "concat {}", lambda a, b: torch.cat((a, b), 1), (2,), (3,))
    case("concat_of_images", "concat {}", lambda a, b: torch.cat((a, b), 1), (2, 2, 3), (1, 2, 3))


def selections():
    case("select_of_vectors", "select { first: 1 count: 3 }", lambda x: x[:, 1:4], (5,))
    case("select_of_channels", "select { first: 2 }", lambda x: x[:, 2:3], (4, 2, 2))
    case("softmax_of_vectors", "softmax {}", nn.Softmax(1), (5,))
    case("softmax_of_images", "softmax {}", nn.Softmax(1), (3, 2, 2))
    case("reshape_of_images", "reshape { shape: [3, -1] }", lambda x: x.reshape(-1, 3, 8), (2, 3, 4))
    case("reshape_to_images", "reshape { shape: [3, 2, 2] }", lambda x: x.reshape(-1, 3, 2, 2), (12,))
    case("embedding", "embedding { num_embeddings: 5 embedding_dim: 3 }", nn.Embedding(5, 3), (2,), batch=4,
         inputs=[torch.tensor([[0, 4], [2, 2], [4, 0], [2, 1]])])


print(HEAD.format(version=torch.__version__.split("+")[0]))
pooling()
convolutions()
activations()
normalisations()
joins()
selections()
print("};\n} // namespace dlrun::engine::pytorch\n// clang-format on")
