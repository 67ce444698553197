#include "engine/model.hpp"

#include "tests/engine/spec_builder.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dlrun::engine {
namespace {

using testing::build_model;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal;

constexpr const char* cnn =
    "input: [1, 28, 28] layers { conv2d { out_channels: 32 kernel_size: 3 padding: 1 } } layers { batch_norm "
    "{} } "
    "layers { relu {} } layers { max_pool2d { kernel_size: 2 } } layers { flatten {} } "
    "layers { linear { out_features: 10 } } loss { cross_entropy {} }";

TEST(model, infers_shapes_from_layer_to_layer) {
  const auto m = build_model(cnn);
  EXPECT_EQ(m->input_shape(), (shape{1, 28, 28}));
  EXPECT_EQ(m->nodes()[0].layer->output_shape(), (shape{32, 28, 28}));
  EXPECT_EQ(m->nodes()[3].layer->output_shape(), (shape{32, 14, 14}));
  EXPECT_EQ(m->nodes()[4].layer->output_shape(), (shape{6272}));
  EXPECT_EQ(m->output_shape(), (shape{10}));
}

TEST(model, names_tensors_as_a_state_dict_does) {
  std::vector<std::string> names;
  const auto m = build_model(cnn);
  for (const auto& tensor : m->layout().tensors()) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv2d0.weight", "conv2d0.bias", "batch_norm1.weight",
                                             "batch_norm1.bias", "batch_norm1.running_mean",
                                             "batch_norm1.running_var", "linear5.weight", "linear5.bias",
                                             "metrics"}));
  EXPECT_EQ(m->layout().find("conv2d0.weight")->extents, (shape{32, 1, 3, 3}));
  EXPECT_EQ(m->layout().find("linear5.weight")->extents, (shape{10, 6272}));
  EXPECT_EQ(m->layout().find("batch_norm1.running_var")->kind, tensor_kind::buffer);
  EXPECT_FLOAT_EQ(m->layout().find("batch_norm1.running_var")->momentum, 0.1F);
}

TEST(model, layers_read_the_inputs_that_they_name) {
  const auto m = build_model(
      "input: [4] layers { name: 'a' linear { out_features: 5 } } "
      "layers { name: 'b' inputs: 'a' relu {} } layers { inputs: 'b' linear { out_features: 3 } }");
  EXPECT_THAT(m->nodes()[0].inputs, ElementsAre(model_node::model_input));
  EXPECT_THAT(m->nodes()[1].inputs, ElementsAre(0));
  EXPECT_THAT(m->nodes()[2].inputs, ElementsAre(1));
}

TEST(model, refuses_sizes_that_no_machine_has_and_names_the_layer) {
  EXPECT_THAT(refusal("input: [1048576] layers { linear { out_features: 1048576 } }"),
              AllOf(HasSubstr("'linear0'"), HasSubstr("weight"), HasSubstr("[1048576, 1048576]")));
  EXPECT_THAT(refusal("input: [65536, 2, 2] "
                      "layers { conv2d { out_channels: 65536 kernel_size: 1024 stride: 1 padding: 1024 } }"),
              HasSubstr("'conv2d0'"));
}

TEST(model, refuses_an_input_that_is_no_earlier_layer) {
  EXPECT_THAT(
      refusal(
          "input: [4] layers { name: 'a' linear { out_features: 5 } } layers { inputs: 'trunk' relu {} }"),
      AllOf(HasSubstr("'relu1'"), HasSubstr("'trunk'"), HasSubstr("input, a")));
  EXPECT_THAT(refusal("input: [4] layers { name: 'a' inputs: 'a' linear { out_features: 5 } }"),
              HasSubstr("'a'"));
}

TEST(model, refuses_two_inputs_where_a_layer_takes_one) {
  EXPECT_THAT(refusal("input: [4] layers { name: 'a' linear { out_features: 5 } } layers { inputs: ['a', "
                      "'input'] relu {} }"),
              HasSubstr("takes one input"));
}

TEST(model, refuses_one_input_or_unlike_inputs_where_a_layer_joins_several) {
  const std::string two = "input: [4] layers { name: 'a' linear { out_features: 5 } } layers { name: 'b' "
                          "linear { out_features: 6 } } ";
  EXPECT_THAT(refusal(two + "layers { inputs: 'b' add {} }"),
              AllOf(HasSubstr("'add2'"), HasSubstr("2 to 16 inputs"), HasSubstr("has 1")));
  EXPECT_THAT(refusal(two + "layers { concat {} }"), HasSubstr("has 1"));
  EXPECT_THAT(refusal(two + "layers { inputs: ['a', 'b'] add {} }"),
              AllOf(HasSubstr("'add2'"), HasSubstr("[5], [6]")));
  EXPECT_THAT(refusal(two + "layers { name: 'm' inputs: ['a', 'input'] multiply {} }"),
              AllOf(HasSubstr("'m'"), HasSubstr("[5], [4]")));
  EXPECT_THAT(refusal("input: [2, 4, 4] layers { name: 'p' max_pool2d { kernel_size: 2 } } "
                      "layers { inputs: ['p', 'input'] concat {} }"),
              AllOf(HasSubstr("'concat1'"), HasSubstr("[2, 2, 2], [2, 4, 4]")));
}

TEST(model, refuses_names_that_are_taken) {
  EXPECT_THAT(
      refusal("input: [4] layers { name: 'a' relu {} } layers { name: 'a' linear { out_features: 2 } }"),
      HasSubstr("'a', which is taken"));
  EXPECT_THAT(refusal("input: [4] layers { name: 'input' linear { out_features: 2 } }"), HasSubstr("taken"));
}

TEST(model, refuses_a_layer_that_nothing_reads) {
  EXPECT_THAT(refusal("input: [4] layers { name: 'a' linear { out_features: 5 } } "
                      "layers { inputs: 'input' linear { out_features: 3 } }"),
              AllOf(HasSubstr("'a'"), HasSubstr("no layer reads"), HasSubstr("[5]")));
}

TEST(model, errors_of_shape_name_the_layer_both_shapes_and_the_way_out) {
  EXPECT_THAT(
      refusal("input: [1, 28, 28] layers { linear { out_features: 10 } }"),
      AllOf(HasSubstr("'linear0'"), HasSubstr("[features]"), HasSubstr("[1, 28, 28]"), HasSubstr("flatten")));
  EXPECT_THAT(refusal("input: [784] layers { conv2d { out_channels: 8 kernel_size: 3 } }"),
              AllOf(HasSubstr("'conv2d0'"), HasSubstr("[channels, height, width]"), HasSubstr("[784]")));
  EXPECT_THAT(refusal("input: [784] layers { max_pool2d { kernel_size: 2 } }"), HasSubstr("[784]"));
  EXPECT_THAT(refusal("input: [1, 4, 4] layers { conv2d { out_channels: 8 kernel_size: 7 padding: 1 } }"),
              AllOf(HasSubstr("[7, 7]"), HasSubstr("[1, 4, 4]")));
  EXPECT_THAT(refusal("input: [1, 1, 4] layers { name: 'p' max_pool2d { kernel_size: 2 } }"),
              AllOf(HasSubstr("'p'"), HasSubstr("[2, 2]"), HasSubstr("[1, 1, 4]")));
  EXPECT_THAT(refusal("input: [1, 4, 4] layers { relu {} }"),
              AllOf(HasSubstr("cross_entropy"), HasSubstr("'relu0'"), HasSubstr("[1, 4, 4]")));
}

TEST(model, errors_of_shape_of_every_layer_name_it_and_the_shapes) {
  const auto both = [](const char* layer, const char* shape) {
    return AllOf(HasSubstr(std::string("'") + layer + "'"), HasSubstr(shape));
  };
  EXPECT_THAT(refusal("input: [9] layers { avg_pool2d { kernel_size: 2 } }"), both("avg_pool2d0", "[9]"));
  EXPECT_THAT(refusal("input: [1, 1, 4] layers { avg_pool2d { kernel_size: 2 } }"),
              both("avg_pool2d0", "[1, 1, 4]"));
  EXPECT_THAT(refusal("input: [2, 9] layers { adaptive_avg_pool2d { output_size: 2 } }"),
              both("adaptive_avg_pool2d0", "[2, 9]"));
  EXPECT_THAT(refusal("input: [9] layers { conv1d { out_channels: 2 kernel_size: 2 } }"),
              AllOf(both("conv1d0", "[9]"), HasSubstr("reshape")));
  EXPECT_THAT(refusal("input: [2, 3] layers { conv1d { out_channels: 2 kernel_size: 4 } }"),
              both("conv1d0", "[2, 3]"));
  EXPECT_THAT(refusal("input: [9] layers { conv_transpose2d { out_channels: 2 kernel_size: 2 } }"),
              both("conv_transpose2d0", "[9]"));
  EXPECT_THAT(
      refusal("input: [1, 2, 2] layers { conv_transpose2d { out_channels: 2 kernel_size: 1 padding: 1 } }"),
      both("conv_transpose2d0", "[1, 2, 2]"));
  EXPECT_THAT(refusal("input: [1, 2, 6] layers { reshape { shape: [5, -1] } }"),
              both("reshape0", "[1, 2, 6]"));
  EXPECT_THAT(refusal("input: [1, 2, 6] layers { reshape { shape: [2, 5] } }"), both("reshape0", "[2, 5]"));
  EXPECT_THAT(refusal("input: [2, 6] layers { layer_norm { normalized_shape: [2] } }"),
              AllOf(both("layer_norm0", "[2, 6]"), HasSubstr("[2]")));
  EXPECT_THAT(refusal("input: [6] layers { layer_norm { normalized_shape: [2, 6] } }"),
              both("layer_norm0", "[2, 6]"));
  EXPECT_THAT(refusal("input: [6, 2] layers { group_norm { num_groups: 4 } }"),
              both("group_norm0", "[6, 2]"));
  EXPECT_THAT(refusal("input: [6, 2] layers { embedding { num_embeddings: 4 embedding_dim: 2 } }"),
              both("embedding0", "[6, 2]"));
  EXPECT_THAT(refusal("input: [6] layers { select { first: 5 count: 2 } }"), both("select0", "[6]"));
  EXPECT_THAT(refusal("input: [6] layers { select { first: 6 } }"), both("select0", "0 to 5"));
}

TEST(model, refuses_arguments_of_newer_layers_out_of_range) {
  const std::string image = "input: [1, 9, 9] layers ", vector = "input: [6] layers ";
  EXPECT_THAT(refusal(image + "{ avg_pool2d {} }"), HasSubstr("kernel_size is 0"));
  EXPECT_THAT(refusal(image + "{ avg_pool2d { kernel_size: 3 padding: 2 } }"), HasSubstr("padding is 2"));
  EXPECT_THAT(refusal(image + "{ adaptive_avg_pool2d {} }"), HasSubstr("output_size is 0"));
  EXPECT_THAT(
      refusal(image + "{ conv_transpose2d { out_channels: 1 kernel_size: 2 stride: 2 output_padding: 2 } }"),
      AllOf(HasSubstr("output_padding is 2"), HasSubstr("stride 2")));
  EXPECT_THAT(refusal(image + "{ conv_transpose2d { out_channels: 1 } }"), HasSubstr("kernel_size is 0"));
  EXPECT_THAT(refusal(vector + "{ reshape { shape: [-1, -1] } }"), HasSubstr("[-1, -1]"));
  EXPECT_THAT(refusal(vector + "{ reshape { shape: [0, 6] } }"), HasSubstr("[0, 6]"));
  EXPECT_THAT(refusal(vector + "{ reshape {} }"), HasSubstr("1 to 3 extents"));
  EXPECT_THAT(refusal(vector + "{ gelu { approximate: 'fast' } }"), HasSubstr("'fast'"));
  EXPECT_THAT(refusal(vector + "{ leaky_relu { negative_slope: nan } }"), HasSubstr("negative_slope is nan"));
  EXPECT_THAT(refusal(vector + "{ layer_norm { eps: 0 } }"), HasSubstr("eps is 0"));
  EXPECT_THAT(refusal(vector + "{ group_norm {} }"), HasSubstr("num_groups is 0"));
  EXPECT_THAT(refusal(vector + "{ embedding { embedding_dim: 2 } }"), HasSubstr("num_embeddings is 0"));
  EXPECT_THAT(refusal(vector + "{ embedding { num_embeddings: 20000000 embedding_dim: 2 } }"),
              HasSubstr("num_embeddings is 20000000"));
  EXPECT_THAT(refusal(vector + "{ embedding { num_embeddings: 4 } }"), HasSubstr("embedding_dim is 0"));
  EXPECT_THAT(refusal(vector + "{ select { first: 0 count: 0 } }"), HasSubstr("count is 0"));
}

TEST(model, refuses_arguments_out_of_range) {
  EXPECT_THAT(refusal("input: [4] layers { linear {} }"), HasSubstr("out_features is 0"));
  EXPECT_THAT(refusal("input: [4] layers { linear { out_features: -3 } }"), HasSubstr("out_features is -3"));
  EXPECT_THAT(refusal("input: [1048576] layers { linear { out_features: 4000000 } }"),
              HasSubstr("too large"));
  EXPECT_THAT(refusal("input: [4] layers { dropout { p: 1 } }"), HasSubstr("p is 1"));
  EXPECT_THAT(refusal("input: [4] layers { dropout { p: nan } }"), HasSubstr("p is nan"));
  EXPECT_THAT(refusal("input: [4] layers { batch_norm { eps: 0 } }"), HasSubstr("eps is 0"));
  EXPECT_THAT(refusal("input: [4] layers { batch_norm { momentum: 1.5 } }"), HasSubstr("momentum is 1.5"));
  const std::string image = "input: [1, 9, 9] layers ";
  EXPECT_THAT(refusal(image + "{ conv2d { kernel_size: 3 } }"), HasSubstr("out_channels is 0"));
  EXPECT_THAT(refusal(image + "{ conv2d { out_channels: 2 } }"), HasSubstr("kernel_size is 0"));
  EXPECT_THAT(refusal(image + "{ conv2d { out_channels: 2 kernel_size: 3 stride: 0 } }"),
              HasSubstr("stride is 0"));
  EXPECT_THAT(refusal(image + "{ conv2d { out_channels: 2 kernel_size: 3 padding: -1 } }"),
              HasSubstr("padding is -1"));
  EXPECT_THAT(refusal(image + "{ max_pool2d {} }"), HasSubstr("kernel_size is 0"));
  EXPECT_THAT(refusal(image + "{ max_pool2d { kernel_size: 2 stride: -1 } }"), HasSubstr("stride is -1"));
  EXPECT_THAT(refusal(image + "{ max_pool2d { kernel_size: 3 padding: 2 } }"), HasSubstr("padding is 2"));
}

TEST(model, refuses_an_input_or_a_graph_that_is_none) {
  EXPECT_THAT(refusal("layers { relu {} }"), HasSubstr("[]"));
  EXPECT_THAT(refusal("input: [2, 3, 4, 5] layers { relu {} }"), HasSubstr("[2, 3, 4, 5]"));
  EXPECT_THAT(refusal("input: [0] layers { relu {} }"), HasSubstr("[0]"));
  EXPECT_THAT(refusal("input: [1048576, 1048576, 1048576] layers { flatten {} }"), HasSubstr("1048576"));
  EXPECT_THAT(refusal("input: [4]"), HasSubstr("no layers"));
  EXPECT_THAT(refusal("input: [4] layers { name: 'x' }"), HasSubstr("no kind"));
}

TEST(model, batch_norm_of_vectors_asks_for_two_records) {
  const auto m =
      build_model("input: [4] layers { linear { out_features: 5 } } layers { name: 'bn' batch_norm {} } "
                  "layers { linear { out_features: 2 } }");
  EXPECT_EQ(m->min_batch(), 2);
  EXPECT_EQ(m->min_batch_layer(), "bn");
  EXPECT_EQ(build_model(cnn)->min_batch(), 1);
}

TEST(model, initial_values_are_uniform_within_one_over_the_root_of_fan_in) {
  const auto m = build_model("input: [400] layers { linear { out_features: 500 } }");
  std::vector<float> flat(m->layout().flat_size());
  m->initialise(1, flat);
  const auto& weight = *m->layout().find("linear0.weight");
  const auto values = std::span(flat).subspan(weight.offset, weight.size);
  const double bound = 1 / std::sqrt(400.0);
  double sum = 0, square = 0;
  for (const float value : values) {
    ASSERT_LE(std::abs(value), bound * (1 + 1e-6));
    sum += value;
    square += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0, 4 * bound / std::sqrt(3 * count));
  EXPECT_NEAR(square / count, bound * bound / 3, 0.01 * bound * bound);
  EXPECT_GT(*std::ranges::max_element(values), 0.999 * bound);
  EXPECT_LT(*std::ranges::min_element(values), -0.999 * bound);
}

TEST(model, knows_which_values_of_a_record_embeddings_read_as_they_are) {
  const std::string table = "{ num_embeddings: 7 embedding_dim: 2 }";
  const auto m =
      build_model("input: [6] layers { flatten {} } layers { name: 'b' select { first: 2 count: 3 } } "
                  "layers { name: 'c' select { first: 1 count: 2 } } "
                  "layers { name: 'near' embedding " +
                  table +
                  " inputs: 'b' } "
                  "layers { name: 'far' embedding " +
                  table +
                  " inputs: 'c' } "
                  "layers { name: 'd' relu {} inputs: 'c' } "
                  "layers { name: 'computed' embedding " +
                  table +
                  " inputs: 'd' } "
                  "layers { concat {} inputs: 'near' inputs: 'far' inputs: 'computed' } "
                  "layers { flatten {} } layers { linear { out_features: 2 } }");
  EXPECT_THAT(m->rows_read(), ElementsAre(row_numbers{2, 3, 7, "near"}, row_numbers{3, 2, 7, "far"}));
}

TEST(model, an_embedding_starts_with_standard_normal_values) {
  const auto m = build_model("input: [1] layers { embedding { num_embeddings: 3001 embedding_dim: 33 } } "
                             "layers { flatten {} } layers { linear { out_features: 2 } }");
  std::vector<float> flat(m->layout().flat_size());
  m->initialise(1, flat);
  const auto& weight = *m->layout().find("embedding0.weight");
  double sum = 0, square = 0, cube = 0, beyond_two = 0;
  for (const float value : std::span(flat).subspan(weight.offset, weight.size)) {
    ASSERT_LT(std::abs(value), 7);
    sum += value;
    square += std::pow(value, 2);
    cube += std::pow(value, 3);
    beyond_two += std::abs(value) > 2 ? 1 : 0;
  }
  const auto count = static_cast<double>(weight.size);
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(square / count, 1, 4 * std::sqrt(2 / count));
  EXPECT_NEAR(cube / count, 0, 4 * std::sqrt(15 / count));
  EXPECT_NEAR(beyond_two / count, 0.0455, 0.003);
}

TEST(model, initial_values_of_a_transposed_convolution_are_those_of_pytorch) {
  const auto m =
      build_model("input: [50, 1, 1] layers { conv_transpose2d { out_channels: 4 kernel_size: 5 } } "
                  "layers { flatten {} } layers { linear { out_features: 2 } }");
  std::vector<float> flat(m->layout().flat_size());
  m->initialise(1, flat);
  const auto& weight = *m->layout().find("conv_transpose2d0.weight");
  EXPECT_EQ(weight.extents, (shape{50, 4, 5, 5}));
  const auto values = std::span(flat).subspan(weight.offset, weight.size);
  EXPECT_NEAR(*std::ranges::max_element(values), 0.1, 1e-3); // 1 / sqrt(4 * 5 * 5)
  EXPECT_NEAR(*std::ranges::min_element(values), -0.1, 1e-3);
}

TEST(model, batch_norm_starts_at_the_identity) {
  const auto m = build_model(cnn);
  std::vector<float> flat(m->layout().flat_size(), 9.0F);
  m->initialise(1, flat);
  EXPECT_EQ(flat[m->layout().find("batch_norm1.weight")->offset], 1.0F);
  EXPECT_EQ(flat[m->layout().find("batch_norm1.bias")->offset], 0.0F);
  EXPECT_EQ(flat[m->layout().find("batch_norm1.running_mean")->offset], 0.0F);
  EXPECT_EQ(flat[m->layout().find("batch_norm1.running_var")->offset], 1.0F);
  EXPECT_EQ(flat[m->layout().metrics().offset], 0.0F);
}

TEST(model, initial_values_follow_from_seed_and_tensor_alone) {
  std::vector<float> once(build_model(cnn)->layout().flat_size()), again(once), other(once);
  build_model(cnn)->initialise(7, once);
  build_model(cnn)->initialise(7, again);
  build_model(cnn)->initialise(8, other);
  EXPECT_EQ(once, again);
  EXPECT_NE(once, other);
  const auto m = build_model(cnn);
  EXPECT_NE(once[m->layout().find("conv2d0.weight")->offset], once[m->layout().find("conv2d0.bias")->offset]);
}

TEST(model, any_part_of_the_initial_values_can_be_made_alone) {
  const char* const embedding =
      "input: [2] layers { embedding { num_embeddings: 501 embedding_dim: 3 } } layers { flatten {} } "
      "layers { linear { out_features: 10 } } loss { cross_entropy {} }";
  for (const auto* text : {cnn, embedding}) {
    const auto m = build_model(text);
    std::vector<float> whole(m->layout().flat_size()), parts(whole.size(), 7.0F);
    m->initialise(3, whole);
    for (std::size_t begin = 0, size = 1; begin < parts.size(); begin += size, size = size % 1009 + 1)
      m->initialise_part(3, begin, std::span(parts).subspan(begin, std::min(size, parts.size() - begin)));
    EXPECT_EQ(parts, whole) << text;
  }
}

} // namespace
} // namespace dlrun::engine
