// The example ResNet-18, made narrow, against PyTorch (tests/engine/data/generate_resnet18.py).
#include "engine/network.hpp"
#include "engine/optimizer.hpp"
#include "job/spec_reader.hpp"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

namespace dlrun::engine {
namespace {

using floats = std::vector<float>;

constexpr std::int64_t narrower = 16, side = 16, records = 4, classes = 10;

/// generate_resnet18.py's function of the same name.
double counted(std::uint64_t stream, std::uint64_t index) {
  auto i = static_cast<std::uint32_t>((index + stream * 1000003) * 2654435761U);
  i = (i ^ (i >> 15)) * 2246822519U;
  i = (i ^ (i >> 13)) * 3266489917U;
  return (i ^ (i >> 16)) / 2147483648.0 - 1;
}

void place(std::uint64_t stream, double scale, double middle, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(middle + scale * counted(stream, i));
}

std::shared_ptr<const model> narrow_resnet18() {
  auto spec = job::read_spec(DLRUN_SOURCE_DIR "/examples/fashion_mnist/resnet18.yaml");
  EXPECT_TRUE(spec) << spec.error().message;
  if (!spec) return nullptr;
  auto& described = *spec->mutable_model();
  described.set_input(1, side);
  described.set_input(2, side);
  for (auto& layer : *described.mutable_layers())
    if (layer.has_conv2d())
      layer.mutable_conv2d()->set_out_channels(layer.conv2d().out_channels() / narrower);
  auto made = model::build(described);
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(nullptr);
}

/// A parameter of PyTorch's model, and what is known of its gradient.
struct known_parameter {
  std::string name;
  std::size_t size;
  double norm, product;
};

struct known_results {
  double loss = 0, evaluation_loss = 0;
  std::vector<known_parameter> parameters;

  known_results() {
    std::ifstream file(DLRUN_SOURCE_DIR "/tests/engine/data/resnet18.txt");
    std::string word;
    file >> word >> loss >> word >> evaluation_loss;
    for (known_parameter p; file >> p.name >> p.size >> p.norm >> p.product;) parameters.push_back(p);
  }
};

/// PyTorch's parameters in the model's layout; the running statistics are initial.
floats parameters_of(const model& m, const known_results& known) {
  floats flat(m.layout().flat_size());
  m.initialise(1, flat);
  for (std::size_t stream = 0; stream < known.parameters.size(); ++stream) {
    const auto& name = known.parameters[stream].name;
    const auto* const tensor = m.layout().find(name);
    EXPECT_NE(tensor, nullptr) << name;
    if (tensor == nullptr) continue;
    const auto values = std::span(flat).subspan(tensor->offset, tensor->size);
    const auto fan_in = static_cast<double>(tensor->size) / static_cast<double>(tensor->extents[0]);
    if (tensor->extents.size() > 1)
      place(stream, std::sqrt(3 / fan_in), 0, values);
    else
      place(stream, 0.5, name.ends_with("weight") ? 1 : 0, values);
  }
  return flat;
}

void expect_gradients(const model& m, const known_results& known, const floats& gradient) {
  for (std::size_t stream = 0; stream < known.parameters.size(); ++stream) {
    const auto& expected = known.parameters[stream];
    const auto* const tensor = m.layout().find(expected.name);
    ASSERT_EQ(tensor->size, expected.size) << expected.name;
    double square = 0, product = 0;
    for (std::size_t i = 0; i < tensor->size; ++i) {
      const double value = gradient[tensor->offset + i];
      square += value * value;
      product += value * counted(2000 + stream, i);
    }
    EXPECT_NEAR(std::sqrt(square), expected.norm, 1e-4 * expected.norm) << expected.name;
    EXPECT_NEAR(product, expected.product, 1e-4 * expected.norm) << expected.name;
  }
}

TEST(resnet18, has_the_loss_and_the_gradients_of_pytorch) {
  const auto m = narrow_resnet18();
  ASSERT_NE(m, nullptr);
  const known_results known;
  ASSERT_EQ(known.parameters.size(), 62U);
  auto parameters = parameters_of(*m, known);
  floats gradient(parameters.size()), input(records * side * side), metrics(m->layout().metrics().size);
  place(1000, 2, 0, input);
  std::vector<std::int32_t> labels(records);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i * 3 % classes);

  network n(m, 1);
  const auto done = n.forward_backward(parameters, {input, labels, {}, records}, {}, gradient);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_NEAR(gradient[m->layout().metrics().offset], known.loss, 1e-5 * known.loss);
  expect_gradients(*m, known, gradient);

  for (const auto& tensor : m->layout().tensors()) {
    if (tensor.kind != tensor_kind::buffer) continue;
    const auto running = std::span(parameters).subspan(tensor.offset, tensor.size);
    update_buffer(1.0F, tensor.momentum, std::span(gradient).subspan(tensor.offset, tensor.size), running,
                  running);
  }
  ASSERT_TRUE(n.evaluate(parameters, {input, labels, {}, records}, metrics));
  EXPECT_NEAR(metrics[parameter_layout::loss_sum], known.evaluation_loss, 1e-5 * known.evaluation_loss);
}

// What torchvision counts for its resnet18, less what its 7x7 stem for colours and its 1000 classes
// have more.
TEST(resnet18, has_the_parameters_of_the_published_one) {
  const auto spec = job::read_spec(DLRUN_SOURCE_DIR "/examples/fashion_mnist/resnet18.yaml");
  ASSERT_TRUE(spec) << spec.error().message;
  const auto m = model::build(spec->model()).value();
  std::uint64_t count = 0;
  for (const auto& tensor : m->layout().tensors())
    count += tensor.kind == tensor_kind::parameter ? tensor.size : 0;
  EXPECT_EQ(count, 11689512U - (7 * 7 * 3 - 3 * 3) * 64 - 990 * 513);
}

} // namespace
} // namespace dlrun::engine
