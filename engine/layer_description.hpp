/// What layers and losses compute, as plain values: for those who compute them elsewhere than on
/// the processor.
#pragma once

#include "kernels/cpu/activations.hpp"
#include "kernels/cpu/average_pool.hpp"
#include "kernels/cpu/convolution_geometry.hpp"
#include "kernels/cpu/distance.hpp"
#include "kernels/cpu/group_norm.hpp"
#include "kernels/cpu/max_pool.hpp"
#include "kernels/cpu/strided.hpp"

#include <cstdint>
#include <variant>
#include <vector>

namespace dlrun::engine {

/// Only make_operation() knows: a layer of a program.
struct host_description {};

/// Tensors: weight (out, in), and bias (out) where it has one.
struct linear_description {
  std::int64_t in = 0, out = 0;
  bool bias = false;
};
/// Of one or two dimensions. Tensors: weight (out_channels, in_channels, kernel...), and bias.
struct convolution_description {
  kernels::cpu::convolution_geometry geometry;
};
/// The way back of `mirrored`, a convolution without bias. Tensors: weight (its out_channels, its
/// in_channels, kernel, kernel), and bias (its in_channels) where it has one.
struct transposed_convolution_description {
  kernels::cpu::convolution_geometry mirrored;
  bool bias = false;
};
struct max_pool_description {
  kernels::cpu::pool_geometry geometry;
};
struct average_pool_description {
  kernels::cpu::average_geometry geometry;
};
struct relu_description {};
/// `slope` is of leaky_relu.
struct activation_description {
  kernels::cpu::activation kind{};
  float slope = 0;
};
/// What is not dropped is multiplied with `scale`.
struct dropout_description {
  float p = 0, scale = 1;
};
/// Tensors: weight and bias where it is affine, then running mean and variance.
struct batch_norm_description {
  float eps = 0;
  bool affine = false;
};
/// Tensors: weight and bias where it is affine.
struct group_norm_description {
  kernels::cpu::group_geometry geometry;
  bool affine = false;
};
/// Over rows of `width` values of a record whose channels come first. Tensors as group_norm.
struct layer_norm_description {
  std::int64_t width = 0;
  float eps = 0;
  bool affine = false;
};
/// Values keep the order that they have with channels first: flatten and reshape.
struct reshape_description {};
struct add_description {};
struct multiply_description {};
/// Which columns of the output each input becomes, in their order.
struct concat_description {
  std::vector<kernels::cpu::column_run> runs{};
};
/// Over the channels.
struct softmax_description {};
/// Tensor: weight (rows, dim).
struct embedding_description {
  std::int64_t rows = 0, dim = 0;
};
/// The channels that are handed on, of all.
struct select_description {
  kernels::cpu::column_run run;
};

using layer_description =
    std::variant<host_description, linear_description, convolution_description,
                 transposed_convolution_description, max_pool_description, average_pool_description,
                 relu_description, activation_description, dropout_description, batch_norm_description,
                 group_norm_description, layer_norm_description, reshape_description, add_description,
                 multiply_description, concat_description, softmax_description, embedding_description,
                 select_description>;

/// kernels/cpu/cross_entropy.hpp. `weight` is empty or of as many as there are classes.
struct cross_entropy_description {
  double label_smoothing = 0;
  std::vector<double> weight{};
};
/// kernels/cpu/distance.hpp. `delta` is of huber; `pos_weight`, of bce_with_logits, is empty, one,
/// or of as many as there are outputs.
struct distance_description {
  kernels::cpu::distance_kind kind{};
  double delta = 0;
  std::vector<double> pos_weight{};
};

using loss_description = std::variant<cross_entropy_description, distance_description>;

} // namespace dlrun::engine
