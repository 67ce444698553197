// Single layers against what PyTorch computed (tests/engine/data/generate_layer_vectors.py).
#include "engine/layer.hpp"
#include "kernels/cpu/onednn.hpp"
#include "kernels/cpu/permute.hpp"
#include "tests/engine/data/pytorch_layer_vectors.hpp"
#include "tests/engine/spec_builder.hpp"

#include <cmath>

namespace dlrun::engine {

namespace pytorch {

void PrintTo(const layer_vectors& c, std::ostream* out) { *out << c.name; }

} // namespace pytorch

namespace {

using floats = std::vector<float>;

class pytorch_layer : public ::testing::TestWithParam<pytorch::layer_vectors> {};

/// `values` of records of shape `extents`, from channels first to channels last or back.
floats turned(const shape& extents, std::int64_t batch, const floats& values, bool to_last) {
  const std::int64_t channels = extents[0], pixels = element_count(extents).value() / channels;
  floats out(values.size());
  kernels::cpu::transpose(batch, to_last ? channels : pixels, to_last ? pixels : channels, values, out);
  return out;
}

void expect_near(const floats& actual, const floats& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 3e-6 * std::max(1.0F, std::abs(expected[i])))
        << what << "[" << i << "]";
}

std::vector<std::span<const float>> views_of(const std::vector<floats>& values) {
  return {values.begin(), values.end()};
}

std::vector<std::span<float>> places_in(std::vector<floats>& values) {
  return {values.begin(), values.end()};
}

TEST_P(pytorch_layer, has_the_same_output_and_gradients) {
  const auto& c = GetParam();
  const auto made = make_layer(testing::parse<spec::LayerSpec>(c.specification), "layer", c.shapes);
  ASSERT_TRUE(made) << made.error().message;
  const auto& layer = **made;
  ASSERT_EQ(layer.tensors().size(), c.parameters.size());
  std::vector<floats> inputs, input_gradients, gradients;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(turned(c.shapes[i], c.batch, c.inputs[i], true));
    input_gradients.emplace_back(inputs[i].size(), std::nanf(""));
  }
  for (std::size_t t = 0; t < c.parameters.size(); ++t) {
    ASSERT_EQ(static_cast<std::size_t>(element_count(layer.tensors()[t].extents).value()),
              c.parameters[t].size());
    gradients.emplace_back(c.parameters[t].size(), std::nanf(""));
  }
  const auto tensor_views = views_of(c.parameters);
  const auto gradient_places = places_in(gradients);
  const pass now{.batch = c.batch, .key = {}, .tensors = tensor_views, .gradients = gradient_places};
  const auto read = views_of(inputs);
  const auto written = places_in(input_gradients);

  kernels::cpu::onednn context;
  const auto compute = layer.make_operation(context, true);
  floats output(static_cast<std::size_t>(c.batch * layer.output_size()), std::nanf(""));
  const auto done = compute->forward(now, read, output);
  ASSERT_TRUE(done) << done.error().message;
  expect_near(turned(layer.output_shape(), c.batch, output, false), c.output, "output");
  compute->backward(now, read, output, turned(layer.output_shape(), c.batch, c.output_gradient, true),
                    written);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    expect_near(turned(c.shapes[i], c.batch, input_gradients[i], false), c.input_gradients[i],
                "gradient of input " + std::to_string(i));
  for (std::size_t t = 0; t < gradients.size(); ++t)
    expect_near(gradients[t], c.parameter_gradients[t], "gradient of " + layer.tensors()[t].name);
}

INSTANTIATE_TEST_SUITE_P(of, pytorch_layer, ::testing::ValuesIn(pytorch::layer_cases),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace dlrun::engine
