// The engine against what PyTorch computed (tests/engine/data/generate_vectors.py).
#include "engine/network.hpp"
#include "engine/optimizer.hpp"
#include "kernels/cpu/onednn.hpp"
#include "kernels/cpu/permute.hpp"
#include "tests/engine/data/pytorch_vectors.hpp"
#include "tests/engine/spec_builder.hpp"

#include <cmath>

namespace dlrun::engine {
namespace {

using testing::build_model;
using testing::parse;
using floats = std::vector<float>;

void expect_close(std::span<const float> actual, std::span<const float> expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance * std::max(1.0F, std::abs(expected[i])))
        << what << "[" << i << "]";
}

void expect_trajectory(const std::string& specification, const floats& expected) {
  const auto rule = optimizer::build(parse<spec::OptimizerSpec>(specification)).value();
  floats parameters = pytorch::optimizer_start, gradient(8);
  floats state(8 * rule.state_floats_per_parameter());
  for (std::uint64_t step = 0; step < 5; ++step) {
    // The gradient arrives as a sum over 4 records: four times the mean.
    for (std::size_t i = 0; i < 8; ++i) gradient[i] = 4 * pytorch::optimizer_gradients[step * 8 + i];
    rule.update({{step}, rule.lr(), 0.25F}, gradient, parameters, parameters, state);
    expect_close(parameters, std::span(expected).subspan(step * 8, 8), 3e-7, specification);
  }
}

TEST(pytorch, sgd_takes_the_same_steps) { expect_trajectory("sgd { lr: 0.1 }", pytorch::sgd_parameters); }

TEST(pytorch, momentum_takes_the_same_steps) {
  expect_trajectory("sgd { lr: 0.05 momentum: 0.9 }", pytorch::momentum_parameters);
}

TEST(pytorch, adam_takes_the_same_steps) {
  expect_trajectory("adam { lr: 0.01 betas: [0.8, 0.99] eps: 1e-6 }", pytorch::adam_parameters);
}

TEST(pytorch, adam_has_the_same_defaults) { expect_trajectory("adam {}", pytorch::adam_defaults_parameters); }

/// One batch_norm layer fed by hand; images are turned to channels last and back.
struct batch_norm_run {
  batch_norm_run(const char* specification, const shape& input, std::int64_t batch_size, const floats& weight,
                 const floats& bias)
      : made(make_layer(parse<spec::LayerSpec>(specification), "norm", {input}).value())
      , compute(made->make_operation(context, true))
      , channels(input[0])
      , batch(batch_size)
      , tensors{weight, bias, {}, {}}
      , gradients(4, floats(weight.size())) {
    tensors[2] = floats(weight.size(), 0.0F);
    tensors[3] = floats(weight.size(), 1.0F);
  }

  floats turned(const floats& values, bool to_last) const {
    floats out(values.size());
    const std::int64_t pixels = made->input_size() / channels;
    kernels::cpu::transpose(batch, to_last ? channels : pixels, to_last ? pixels : channels, values, out);
    return out;
  }

  floats forward(const floats& x, bool training) {
    input = turned(x, true);
    output.resize(x.size());
    const std::span<const float> read = input;
    EXPECT_TRUE(compute->forward(now(training), {&read, 1}, output));
    return turned(output, false);
  }

  floats backward(const floats& dy) {
    floats dx(dy.size());
    const std::span<const float> read = input;
    const std::span<float> written = dx;
    compute->backward(now(true), {&read, 1}, output, turned(dy, true), {&written, 1});
    return turned(dx, false);
  }

  void update_running_statistics() {
    for (std::size_t t : {2U, 3U})
      update_buffer(1.0F, made->tensors()[t].momentum, gradients[t], tensors[t], tensors[t]);
  }

  pass now(bool training) {
    tensor_views.assign(tensors.begin(), tensors.end());
    gradient_views.assign(gradients.begin(), gradients.end());
    return {.batch = batch,
            .training = training,
            .key = {},
            .layer = 0,
            .tensors = tensor_views,
            .gradients = gradient_views};
  }

  kernels::cpu::onednn context;
  std::unique_ptr<layer> made;
  std::unique_ptr<operation> compute;
  std::int64_t channels, batch;
  std::vector<floats> tensors, gradients;
  std::vector<std::span<const float>> tensor_views;
  std::vector<std::span<float>> gradient_views;
  floats input, output;
};

TEST(pytorch, batch_norm_of_vectors_is_the_same_in_training_and_evaluation) {
  using namespace pytorch;
  batch_norm_run run("batch_norm {}", {4}, 6, batch_norm_1d_weight, batch_norm_1d_bias);
  expect_close(run.forward(batch_norm_1d_x, true), batch_norm_1d_y, 2e-6, "y");
  expect_close(run.backward(batch_norm_1d_dy), batch_norm_1d_dx, 2e-6, "dx");
  expect_close(run.gradients[0], batch_norm_1d_dweight, 2e-6, "dweight");
  expect_close(run.gradients[1], batch_norm_1d_dbias, 2e-6, "dbias");
  run.update_running_statistics();
  expect_close(run.tensors[2], batch_norm_1d_running_mean, 1e-6, "running_mean");
  expect_close(run.tensors[3], batch_norm_1d_running_var, 1e-6, "running_var");
  expect_close(run.forward(batch_norm_1d_x, false), batch_norm_1d_eval_y, 2e-6, "y in evaluation");
}

TEST(pytorch, batch_norm_of_images_is_the_same_in_training_and_evaluation) {
  using namespace pytorch;
  batch_norm_run run("batch_norm { momentum: 0.3 }", {3, 2, 3}, 2, batch_norm_2d_weight, batch_norm_2d_bias);
  expect_close(run.forward(batch_norm_2d_x, true), batch_norm_2d_y, 2e-6, "y");
  expect_close(run.backward(batch_norm_2d_dy), batch_norm_2d_dx, 2e-6, "dx");
  expect_close(run.gradients[0], batch_norm_2d_dweight, 2e-6, "dweight");
  expect_close(run.gradients[1], batch_norm_2d_dbias, 2e-6, "dbias");
  run.update_running_statistics();
  expect_close(run.tensors[2], batch_norm_2d_running_mean, 1e-6, "running_mean");
  expect_close(run.tensors[3], batch_norm_2d_running_var, 1e-6, "running_var");
  expect_close(run.forward(batch_norm_2d_x, false), batch_norm_2d_eval_y, 2e-6, "y in evaluation");
}

constexpr const char* small_cnn =
    "input: [2, 6, 6] layers { name: '0' conv2d { out_channels: 3 kernel_size: 3 padding: 1 } } "
    "layers { name: '1' batch_norm {} } layers { relu {} } layers { max_pool2d { kernel_size: 2 } } layers { "
    "flatten {} } "
    "layers { name: '5' linear { out_features: 4 } }";

/// Copies a tensor of PyTorch's into the flat vector, under the name that both give it.
void place(const model& m, floats& flat, const std::string& name, const floats& values) {
  const auto* const tensor = m.layout().find(name);
  ASSERT_NE(tensor, nullptr) << name;
  ASSERT_EQ(tensor->size, values.size()) << name;
  std::copy(values.begin(), values.end(), flat.begin() + static_cast<std::ptrdiff_t>(tensor->offset));
}

TEST(pytorch, a_network_has_the_same_loss_and_gradients_from_the_same_state_dict) {
  using namespace pytorch;
  const auto m = build_model(small_cnn);
  floats parameters(m->layout().flat_size()), gradient(parameters.size()),
      metrics(m->layout().metrics().size);
  m->initialise(1, parameters); // for running_mean 0 and running_var 1
  place(*m, parameters, "0.weight", network_0_weight);
  place(*m, parameters, "0.bias", network_0_bias);
  place(*m, parameters, "1.weight", network_1_weight);
  place(*m, parameters, "1.bias", network_1_bias);
  place(*m, parameters, "5.weight", network_5_weight);
  place(*m, parameters, "5.bias", network_5_bias);
  network n(m, 1);
  const std::vector<std::int32_t> labels{1, 3, 0};
  const batch records{network_records, labels, {}, 3};
  ASSERT_TRUE(n.forward_backward(parameters, records, {}, gradient));

  const auto part = [&](const std::string& name) {
    const auto* const tensor = m->layout().find(name);
    return std::span<const float>(gradient).subspan(tensor->offset, tensor->size);
  };
  expect_close(part("metrics").first(1), network_loss, 1e-6, "loss");
  expect_close(part("0.weight"), network_0_weight_gradient, 5e-6, "0.weight");
  expect_close(part("0.bias"), network_0_bias_gradient, 5e-6, "0.bias");
  expect_close(part("1.weight"), network_1_weight_gradient, 5e-6, "1.weight");
  expect_close(part("1.bias"), network_1_bias_gradient, 5e-6, "1.bias");
  expect_close(part("5.weight"), network_5_weight_gradient, 5e-6, "5.weight");
  expect_close(part("5.bias"), network_5_bias_gradient, 5e-6, "5.bias");

  place(*m, parameters, "1.running_mean", network_1_running_mean);
  place(*m, parameters, "1.running_var", network_1_running_var);
  ASSERT_TRUE(n.evaluate(parameters, records, metrics));
  expect_close(std::span(metrics).first(1), network_eval_loss, 1e-6, "loss in evaluation");
}

} // namespace
} // namespace dlrun::engine
