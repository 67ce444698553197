/// Models that have all kinds of layers, and problems for them.
#pragma once

#include "tests/engine/spec_builder.hpp"

#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

namespace dlrun::engine::testing {

struct gradient_case {
  const char* name;
  const char* specification;
  std::size_t batch;
  unsigned whole = 0; ///< records are whole numbers below this, as an embedding reads them
};

inline void PrintTo(const gradient_case& c, std::ostream* out) { *out << c.name; }

/// A problem in general position: no two equal values, so no kink of relu or max_pool within a
/// difference's reach.
struct random_problem {
  std::vector<float> parameters, records;
  std::vector<std::int32_t> labels;

  random_problem(const model& m, std::size_t batch, unsigned whole)
      : parameters(m.layout().flat_size())
      , labels(batch) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    m.initialise(3, parameters);
    for (auto& value : parameters) // also moves batch_norm's weight and bias off 1 and 0
      value += 0.2F * normal(random);
    records.resize(batch * static_cast<std::size_t>(element_count(m.input_shape()).value()));
    for (auto& value : records) value = whole == 0 ? normal(random) : static_cast<float>(random() % whole);
    for (auto& label : labels)
      label = static_cast<std::int32_t>(random() % static_cast<unsigned>(m.output_shape()[0]));
  }
};

inline const gradient_case gradient_cases[] = {
    {"linear", "input: [5] layers { linear { out_features: 4 } } layers { linear { out_features: 3 } }", 3},
    {"linear_without_bias",
     "input: [5] layers { linear { out_features: 4 bias: false } } layers { linear { out_features: 3 bias: "
     "false } }",
     3},
    {"relu",
     "input: [5] layers { linear { out_features: 9 } } layers { relu {} } layers { linear { out_features: 3 "
     "} }",
     4},
    {"dropout",
     "input: [5] layers { linear { out_features: 21 } } layers { dropout { p: 0.4 } } layers { linear { "
     "out_features: 3 } }",
     4},
    {"conv2d",
     "input: [2, 6, 5] layers { conv2d { out_channels: 3 kernel_size: 3 padding: 1 } } "
     "layers { conv2d { out_channels: 4 kernel_size: 2 } } layers { flatten {} } layers { linear { "
     "out_features: 3 } }",
     2},
    {"conv2d_strided_without_bias",
     "input: [1, 7, 8] layers { conv2d { out_channels: 8 kernel_size: 3 stride: 2 padding: 2 bias: false } } "
     "layers { conv2d { out_channels: 2 kernel_size: 1 stride: 2 } } layers { flatten {} } layers { linear { "
     "out_features: 3 } }",
     2},
    {"max_pool2d",
     "input: [2, 6, 6] layers { conv2d { out_channels: 3 kernel_size: 3 padding: 1 } } "
     "layers { max_pool2d { kernel_size: 2 } } layers { flatten {} } layers { linear { out_features: 3 } }",
     2},
    {"max_pool2d_overlapping_and_padded",
     "input: [1, 7, 6] layers { conv2d { out_channels: 4 kernel_size: 3 padding: 1 } } "
     "layers { max_pool2d { kernel_size: 3 stride: 2 padding: 1 } } layers { flatten {} } layers { linear { "
     "out_features: 3 } }",
     2},
    {"max_pool2d_with_a_rest",
     "input: [1, 7, 8] layers { conv2d { out_channels: 4 kernel_size: 3 padding: 1 } } "
     "layers { max_pool2d { kernel_size: 2 stride: 3 } } layers { flatten {} } layers { linear { "
     "out_features: 3 } }",
     2},
    {"batch_norm_of_vectors",
     "input: [5] layers { linear { out_features: 6 } } layers { batch_norm {} } layers { linear { "
     "out_features: 3 } }",
     5},
    {"batch_norm_of_images",
     "input: [2, 4, 4] layers { conv2d { out_channels: 3 kernel_size: 3 } } layers { batch_norm { eps: 0.01 "
     "} } "
     "layers { flatten {} } layers { linear { out_features: 3 } }",
     3},
    {"batch_norm_without_affine",
     "input: [5] layers { linear { out_features: 6 } } layers { batch_norm { affine: false } } "
     "layers { linear { out_features: 3 } }",
     4},
    {"avg_pool2d",
     "input: [2, 6, 6] layers { conv2d { out_channels: 3 kernel_size: 3 padding: 1 } } "
     "layers { avg_pool2d { kernel_size: 2 } } layers { flatten {} } layers { linear { out_features: 3 } }",
     2},
    {"avg_pool2d_overlapping_and_padded",
     "input: [1, 7, 6] layers { conv2d { out_channels: 4 kernel_size: 3 padding: 1 } } "
     "layers { avg_pool2d { kernel_size: 3 stride: 2 padding: 1 } } layers { flatten {} } layers { linear { "
     "out_features: 3 } }",
     2},
    {"avg_pool2d_that_does_not_count_padding",
     "input: [1, 7, 6] layers { conv2d { out_channels: 4 kernel_size: 3 padding: 1 } } "
     "layers { avg_pool2d { kernel_size: 3 stride: 2 padding: 1 count_include_pad: false } } layers { "
     "flatten "
     "{} } layers { linear { out_features: 3 } }",
     2},
    {"adaptive_avg_pool2d",
     "input: [1, 7, 5] layers { conv2d { out_channels: 3 kernel_size: 3 padding: 1 } } "
     "layers { adaptive_avg_pool2d { output_size: 3 } } layers { flatten {} } layers { linear { "
     "out_features: 3 } }",
     2},
    {"conv1d",
     "input: [2, 9] layers { conv1d { out_channels: 4 kernel_size: 3 padding: 1 } } layers { tanh {} } "
     "layers { conv1d { out_channels: 3 kernel_size: 4 stride: 2 padding: 2 bias: false } } layers { flatten "
     "{} } layers { linear { out_features: 3 } }",
     3},
    {"conv_transpose2d",
     "input: [2, 3, 4] layers { conv_transpose2d { out_channels: 3 kernel_size: 3 } } layers { tanh {} } "
     "layers { conv_transpose2d { out_channels: 2 kernel_size: 3 stride: 2 padding: 1 output_padding: 1 } } "
     "layers { flatten {} } layers { linear { out_features: 3 } }",
     2},
    {"conv_transpose2d_without_bias",
     "input: [1, 3, 2] layers { conv_transpose2d { out_channels: 8 kernel_size: 2 stride: 3 bias: false } } "
     "layers { conv_transpose2d { out_channels: 1 kernel_size: 1 bias: false } } layers { flatten {} } "
     "layers "
     "{ linear { out_features: 3 } }",
     2},
    {"reshape",
     "input: [12] layers { linear { out_features: 24 } } layers { reshape { shape: [2, 3, 4] } } "
     "layers { conv2d { out_channels: 3 kernel_size: 2 } } layers { reshape { shape: [9, -1] } } "
     "layers { conv1d { out_channels: 2 kernel_size: 2 } } layers { reshape { shape: -1 } } "
     "layers { linear { out_features: 3 } }",
     2},
    {"gelu",
     "input: [5] layers { linear { out_features: 9 } } layers { gelu {} } layers { linear { out_features: 3 "
     "} }",
     4},
    {"gelu_by_tanh",
     "input: [5] layers { linear { out_features: 9 } } layers { gelu { approximate: 'tanh' } } layers { "
     "linear { "
     "out_features: 3 } }",
     4},
    {"silu",
     "input: [5] layers { linear { out_features: 9 } } layers { silu {} } layers { linear { out_features: 3 "
     "} }",
     4},
    {"sigmoid",
     "input: [5] layers { linear { out_features: 9 } } layers { sigmoid {} } layers { linear { out_features: "
     "3 } }",
     4},
    {"tanh",
     "input: [5] layers { linear { out_features: 9 } } layers { tanh {} } layers { linear { out_features: 3 "
     "} }",
     4},
    {"leaky_relu",
     "input: [5] layers { linear { out_features: 9 } } layers { leaky_relu { negative_slope: 0.2 } } "
     "layers { leaky_relu {} } layers { linear { out_features: 3 } }",
     4},
    {"layer_norm_of_vectors",
     "input: [5] layers { linear { out_features: 6 } } layers { layer_norm {} } layers { linear { "
     "out_features: 3 } }",
     3},
    {"layer_norm_of_images",
     "input: [2, 4, 3] layers { conv2d { out_channels: 3 kernel_size: 2 } } layers { layer_norm { eps: 0.01 "
     "} } "
     "layers { flatten {} } layers { linear { out_features: 3 } }",
     2},
    {"layer_norm_of_the_last_dimensions",
     "input: [2, 4, 4] layers { conv2d { out_channels: 3 kernel_size: 2 } } "
     "layers { layer_norm { normalized_shape: [3, 3] eps: 0.1 } } "
     "layers { layer_norm { normalized_shape: 3 eps: 0.1 } } "
     "layers { layer_norm { normalized_shape: [3, 3] eps: 0.1 elementwise_affine: false } } "
     "layers { flatten {} } layers { linear { out_features: 3 } }",
     2},
    {"group_norm_of_images",
     "input: [2, 4, 3] layers { conv2d { out_channels: 6 kernel_size: 2 } } layers { group_norm { "
     "num_groups: "
     "3 } } layers { group_norm { num_groups: 1 affine: false } } layers { flatten {} } layers { linear { "
     "out_features: 3 } }",
     2},
    {"group_norm_of_vectors_and_sequences",
     "input: [4] layers { linear { out_features: 6 } } layers { group_norm { num_groups: 2 eps: 0.1 } } "
     "layers { reshape { shape: [2, 3] } } layers { group_norm { num_groups: 2 eps: 0.1 } } layers { flatten "
     "{} } "
     "layers { linear { out_features: 3 } }",
     3},
    {"add",
     "input: [5] layers { name: 'a' linear { out_features: 4 } } layers { name: 'b' inputs: 'input' linear { "
     "out_features: 4 } } layers { inputs: ['a', 'b', 'a'] add {} } layers { tanh {} } layers { linear { "
     "out_features: 3 } }",
     3},
    {"add_around_a_block",
     "input: [1, 4, 4] layers { name: 'x' conv2d { out_channels: 3 kernel_size: 3 padding: 1 } } "
     "layers { batch_norm {} } layers { relu {} } "
     "layers { name: 'y' conv2d { out_channels: 3 kernel_size: 3 padding: 1 } } "
     "layers { inputs: ['y', 'x'] add {} } layers { flatten {} } layers { linear { out_features: 3 } }",
     3},
    {"multiply",
     "input: [5] layers { name: 'a' linear { out_features: 4 } } layers { name: 'b' sigmoid {} } "
     "layers { name: 'c' inputs: 'input' linear { out_features: 4 } } "
     "layers { inputs: ['a', 'b', 'c'] multiply {} } layers { linear { out_features: 3 } }",
     3},
    {"concat_of_images",
     "input: [2, 4, 3] layers { name: 'a' conv2d { out_channels: 3 kernel_size: 2 } } "
     "layers { name: 'b' inputs: 'input' conv2d { out_channels: 2 kernel_size: 2 } } "
     "layers { inputs: ['a', 'b', 'a'] concat {} } layers { flatten {} } layers { linear { out_features: 3 } "
     "}",
     2},
    {"concat_of_vectors_beside_the_input",
     "input: [5] layers { name: 'a' linear { out_features: 4 } } layers { inputs: ['input', 'a'] concat {} } "
     "layers { linear { out_features: 3 } }",
     3},
    {"select_of_vectors_and_channels",
     "input: [4] layers { name: 'a' linear { out_features: 9 } } layers { name: 'b' select { first: 2 count: "
     "6 } } "
     "layers { reshape { shape: [3, 2] } } layers { select { first: 1 count: 2 } } layers { name: 'c' "
     "flatten {} } "
     "layers { inputs: 'a' select { first: 8 } } layers { inputs: ['select5', 'c', 'b'] concat {} } layers { "
     "linear { "
     "out_features: 3 } }",
     3},
    {"softmax_of_vectors_and_channels",
     "input: [4] layers { linear { out_features: 6 } } layers { softmax {} } layers { linear { out_features: "
     "6 } } "
     "layers { reshape { shape: [3, 2] } } layers { softmax {} } layers { flatten {} } layers { linear { "
     "out_features: 3 } }",
     3},
    {"embedding",
     "input: [2] layers { embedding { num_embeddings: 5 embedding_dim: 3 } } layers { flatten {} } "
     "layers { linear { out_features: 3 } }",
     4, 5},
    {"embedding_of_one_column_of_a_table",
     "input: [4] layers { name: 'c' select { first: 1 } } layers { embedding { num_embeddings: 5 "
     "embedding_dim: "
     "2 } } layers { name: 'e' flatten {} } layers { inputs: ['input', 'e', 'c'] concat {} } layers { linear "
     "{ "
     "out_features: 3 } }",
     3, 5},
    {"many_readers",
     "input: [4] layers { name: 'a' linear { out_features: 5 } } layers { name: 'b' tanh {} } "
     "layers { name: 'c' inputs: 'a' sigmoid {} } layers { name: 'd' inputs: ['a', 'b', 'c'] concat {} } "
     "layers { name: 'e' linear { out_features: 5 } } layers { inputs: ['a', 'e', 'c'] add {} } layers { "
     "linear { "
     "out_features: 3 } }",
     3},
    {"all_layers",
     "input: [3, 8, 8] layers { conv2d { out_channels: 5 kernel_size: 3 padding: 1 } } layers { batch_norm "
     "{} } "
     "layers { relu {} } layers { max_pool2d { kernel_size: 2 } } layers { flatten {} } layers { linear { "
     "out_features: 7 } } "
     "layers { relu {} } layers { dropout { p: 0.3 } } layers { linear { out_features: 4 } }",
     3},
};

} // namespace dlrun::engine::testing
