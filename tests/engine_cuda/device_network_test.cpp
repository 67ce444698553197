// Whole models on a device, against the same on the processor.
#include "engine/cuda/cuda_computer.hpp"
#include "engine/cuda/dry_device.hpp"
#include "engine/network.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/engine/gradient_cases.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dlrun::engine {
namespace {

using kernels::cuda::stand_in_device;
using kernels::cuda::stand_in_settings;
using kernels::cuda::thread_order;
using testing::build_model;
using testing::gradient_case;
using testing::random_problem;

std::unique_ptr<computer> on_stand_in(const std::shared_ptr<const model>& m,
                                      const stand_in_settings& settings = {}) {
  return make_cuda_computer(m, 1, std::make_unique<stand_in_device>(settings));
}

/// What a pass over the problem gives.
struct computed {
  std::vector<float> gradient, metrics, outputs;
};

computed all_of(computer& on, const model& m, const random_problem& p) {
  const auto records = static_cast<std::int64_t>(p.labels.size());
  const batch all{p.records, p.labels, {}, records};
  computed made;
  made.gradient.resize(m.layout().flat_size());
  made.metrics.resize(m.layout().metrics().size);
  made.outputs.resize(p.labels.size() * static_cast<std::size_t>(*element_count(m.output_shape())));
  EXPECT_TRUE(on.read({0}, p.parameters));
  auto gradient = on.make_vector(made.gradient.size()).value();
  EXPECT_TRUE(on.forward_backward(all, {5, 6, 7}, *gradient, nullptr));
  EXPECT_TRUE(on.copy(*gradient, 0, made.gradient));
  EXPECT_TRUE(on.evaluate(all, made.metrics));
  EXPECT_TRUE(on.predict(p.records, records, made.outputs));
  return made;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, const char* what,
                 float tolerance = 2e-5F) {
  ASSERT_EQ(a.size(), b.size());
  float largest = 0;
  for (const float one : b) largest = std::max(largest, std::abs(one));
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1e-3F, largest)) << what << "[" << i << "]";
}

class device_network : public ::testing::TestWithParam<gradient_case> {};

TEST_P(device_network, computes_what_the_processor_computes) {
  const auto m = build_model(GetParam().specification);
  const random_problem p(*m, GetParam().batch, GetParam().whole);
  const auto here = make_computer(m, 1);
  const auto expected = all_of(*here, *m, p);
  const auto there = on_stand_in(m);
  const auto made = all_of(*there, *m, p);
  expect_near(made.gradient, expected.gradient, "gradient");
  expect_near(made.metrics, expected.metrics, "metrics");
  expect_near(made.outputs, expected.outputs, "outputs");
}

/// A forgotten barrier, a forgotten event or memory that is read before it is written would show.
TEST_P(device_network, gives_the_same_bits_in_any_order_of_threads_and_lanes) {
  const auto m = build_model(GetParam().specification);
  const random_problem p(*m, GetParam().batch, GetParam().whole);
  const auto first = all_of(*on_stand_in(m), *m, p);
  for (const auto order : {thread_order::descending, thread_order::seeded})
    for (const std::uint64_t seed : {2, 3}) {
      stand_in_settings settings;
      settings.order = order;
      settings.seed = seed;
      const auto again = all_of(*on_stand_in(m, settings), *m, p);
      EXPECT_EQ(again.gradient, first.gradient);
      EXPECT_EQ(again.metrics, first.metrics);
      EXPECT_EQ(again.outputs, first.outputs);
    }
}

/// A computer, its device, and two vectors for gradients.
struct graphing_computer {
  stand_in_device* device;
  std::unique_ptr<computer> computing;
  std::vector<std::unique_ptr<computer_vector>> gradients;

  graphing_computer(const std::shared_ptr<const model>& m, const stand_in_settings& settings) {
    auto made = std::make_unique<stand_in_device>(settings);
    device = made.get();
    computing = make_cuda_computer(m, 1, std::move(made));
    for (int i = 0; i < 2; ++i) gradients.push_back(computing->make_vector(m->layout().flat_size()).value());
  }
};

/// What one pass of each kind gives. `number` decides its key, its parameters, its records, how
/// many there are, and where the gradient goes.
std::vector<float> pass_number(graphing_computer& on, const model& m, const random_problem& p,
                               std::size_t number) {
  auto [parameters, records, labels] = p;
  for (auto& value : parameters) value *= 1.0F + 0.125F * static_cast<float>(number);
  std::rotate(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(number % labels.size()),
              labels.end());
  const auto record = static_cast<std::size_t>(*element_count(m.input_shape()));
  std::rotate(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(number % labels.size() * record),
              records.end());
  const std::size_t size = labels.size() - (number % 3 == 2 ? 1 : 0);
  const batch some{std::span{records}.first(size * record),
                   std::span{labels}.first(size),
                   {},
                   static_cast<std::int64_t>(size)};
  std::vector<float> gradient(m.layout().flat_size()), metrics(m.layout().metrics().size),
      outputs(size * static_cast<std::size_t>(*element_count(m.output_shape())));
  auto& vector = *on.gradients[number % 2];
  EXPECT_TRUE(on.computing->read({number}, parameters));
  EXPECT_TRUE(
      on.computing->forward_backward(some, {5, number, static_cast<std::uint32_t>(number / 2)}, vector,
                                     number % 4 < 2 ? engine::computer::progress{[](auto) {}} : nullptr));
  EXPECT_TRUE(on.computing->copy(vector, 0, gradient));
  EXPECT_TRUE(on.computing->evaluate(some, metrics));
  EXPECT_TRUE(on.computing->predict(some.records, some.size, outputs));
  gradient.insert(gradient.end(), metrics.begin(), metrics.end());
  gradient.insert(gradient.end(), outputs.begin(), outputs.end());
  return gradient;
}

/// A graph that ran with an argument of an earlier pass would give other bits: its key, its number
/// of records, its vector.
TEST_P(device_network, gives_the_bits_of_single_steps_when_passes_are_graphs) {
  const auto m = build_model(GetParam().specification);
  const random_problem p(*m, GetParam().batch, GetParam().whole);
  for (const auto arithmetic : {kernels::cuda::precision::fp32, kernels::cuda::precision::bf16}) {
    graphing_computer graphing{m, {.order = thread_order::seeded, .seed = 2, .arithmetic = arithmetic}};
    for (std::size_t number = 0; number < 24; ++number) {
      graphing_computer plain{m, {.faults = {.no_graph_from = 1}, .arithmetic = arithmetic}};
      ASSERT_EQ(pass_number(graphing, *m, p, number), pass_number(plain, *m, p, number)) << number;
      ASSERT_EQ(plain.device->counts().graphs, 0);
    }
    EXPECT_GT(graphing.device->counts().graphs, 24) << "of more than 72 passes";
  }
}

INSTANTIATE_TEST_SUITE_P(of, device_network, ::testing::ValuesIn(testing::gradient_cases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Some factors of the small network need no rounding, but not all.
TEST(device_network_in_tf32, has_bits_of_its_own_in_any_order_and_numbers_that_are_near) {
  const auto m =
      build_model("input: [3, 9, 9] layers { conv2d { out_channels: 4 kernel_size: 3 } } layers { relu {} } "
                  "layers { flatten {} } layers { linear { out_features: 3 } }");
  const random_problem p(*m, 5, 0);
  const auto in_fp32 = all_of(*on_stand_in(m), *m, p);
  stand_in_settings settings;
  settings.arithmetic = kernels::cuda::precision::tf32;
  const auto first = all_of(*on_stand_in(m, settings), *m, p);
  EXPECT_NE(first.gradient, in_fp32.gradient);
  EXPECT_NE(first.outputs, in_fp32.outputs);
  // Half a unit of the 11th bit in each of two factors, over two layers there and back.
  constexpr float of_tf32 = 5e-3F;
  expect_near(first.gradient, in_fp32.gradient, "gradient", of_tf32);
  expect_near(first.outputs, in_fp32.outputs, "outputs", of_tf32);
  for (const std::uint64_t seed : {2, 3}) {
    settings.order = thread_order::seeded;
    settings.seed = seed;
    const auto again = all_of(*on_stand_in(m, settings), *m, p);
    EXPECT_EQ(again.gradient, first.gradient);
    EXPECT_EQ(again.metrics, first.metrics);
    EXPECT_EQ(again.outputs, first.outputs);
  }
}

// ---- bf16

stand_in_settings in_bf16() {
  stand_in_settings settings;
  settings.arithmetic = kernels::cuda::precision::bf16;
  return settings;
}

/// How far `a` is from `b`, as a part of the length of `b`.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double apart = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    length += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(apart / std::max(length, 1e-30));
}

class device_network_in_bf16 : public ::testing::TestWithParam<gradient_case> {};

/// Each activation is off by half a unit of its 8th bit. Where that makes another one the largest
/// of a window, its gradient goes elsewhere.
TEST_P(device_network_in_bf16, has_numbers_that_are_near_and_the_same_bits_in_any_order) {
  const auto m = build_model(GetParam().specification);
  const random_problem p(*m, GetParam().batch, GetParam().whole);
  const auto in_fp32 = all_of(*on_stand_in(m), *m, p);
  auto settings = in_bf16();
  const auto first = all_of(*on_stand_in(m, settings), *m, p);
  EXPECT_LE(distance(first.outputs, in_fp32.outputs), 0.02);
  EXPECT_LE(distance(first.gradient, in_fp32.gradient), 0.1);
  settings.order = thread_order::seeded;
  for (const std::uint64_t seed : {2, 3}) {
    settings.seed = seed;
    const auto again = all_of(*on_stand_in(m, settings), *m, p);
    EXPECT_EQ(again.gradient, first.gradient);
    EXPECT_EQ(again.metrics, first.metrics);
    EXPECT_EQ(again.outputs, first.outputs);
  }
}

INSTANTIATE_TEST_SUITE_P(of, device_network_in_bf16, ::testing::ValuesIn(testing::gradient_cases),
                         [](const auto& info) { return std::string(info.param.name); });

/// The losses, with what each takes.
struct loss_case {
  const char* name;
  const char* loss;
};

class device_loss : public ::testing::TestWithParam<loss_case> {};

TEST_P(device_loss, is_that_of_the_processor) {
  const auto m =
      build_model(std::string("input: [4] layers { linear { out_features: 3 } } ") + GetParam().loss);
  std::vector<float> parameters(m->layout().flat_size());
  m->initialise(7, parameters);
  const std::vector<float> records{1, -2, 3, 0.5F, 2, 2, -1, 0, 0.1F, 0.2F, 0.3F, -4};
  const std::vector<float> values{0, 1, 0.5F, 1, 0.25F, 0, 0, 0, 1};
  const std::vector<std::int32_t> classes{2, 0, 1};
  const bool by_class = m->loss().targets() == target_kind::classes;
  const batch all{records,
                  by_class ? std::span<const std::int32_t>{classes} : std::span<const std::int32_t>{},
                  by_class ? std::span<const float>{} : std::span<const float>{values}, 3};
  std::vector<std::vector<float>> made;
  for (auto& on : {make_computer(m, 1), on_stand_in(m)}) {
    ASSERT_TRUE(on->read({0}, parameters));
    auto gradient = on->make_vector(parameters.size()).value();
    std::vector<float> copied(parameters.size()), metrics(m->layout().metrics().size);
    for (int pass = 0; pass < 2; ++pass) // what is brought once is there the second time too
      ASSERT_TRUE(on->forward_backward(all, {1, 2, 3}, *gradient, nullptr));
    ASSERT_TRUE(on->copy(*gradient, 0, copied));
    ASSERT_TRUE(on->evaluate(all, metrics));
    copied.insert(copied.end(), metrics.begin(), metrics.end());
    made.push_back(std::move(copied));
  }
  expect_near(made[1], made[0], GetParam().name);
}

const loss_case loss_cases[] = {
    {"cross_entropy", ""},
    {"smoothed_and_weighted", "loss { cross_entropy { label_smoothing: 0.1 weight: [1, 2, 0.5] } }"},
    {"bce_with_logits", "loss { bce_with_logits {} }"},
    {"bce_with_one_weight", "loss { bce_with_logits { pos_weight: 3 } }"},
    {"bce_with_weights", "loss { bce_with_logits { pos_weight: [3, 1, 0.5] } }"},
    {"mse", "loss { mse {} }"},
    {"l1", "loss { l1 {} }"},
    {"huber", "loss { huber { delta: 0.3 } }"},
};

INSTANTIATE_TEST_SUITE_P(of, device_loss, ::testing::ValuesIn(loss_cases),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- linear and relu in one step

/// Products with relu, and relus by themselves, of a pass there and back.
std::pair<int, int> relus_of(const std::string& layers, kernels::cuda::precision arithmetic) {
  const auto m = build_model("input: [4] " + layers);
  int inside = 0, alone = 0;
  const auto hear = [&](const kernels::cuda::step& what) {
    if (const auto* const product = std::get_if<kernels::cuda::product>(&what))
      inside += product->relu ? 1 : 0;
    alone += std::holds_alternative<kernels::cuda::relu_forward>(what) ? 1 : 0;
  };
  const auto on = make_cuda_computer(m, 1, std::make_unique<dry_device>(arithmetic, hear));
  const std::vector<float> parameters(m->layout().flat_size()), records(8);
  const std::vector<std::int32_t> labels(2);
  EXPECT_TRUE(on->read({0}, parameters));
  auto gradient = on->make_vector(parameters.size()).value();
  EXPECT_TRUE(on->forward_backward({records, labels, {}, 2}, {1, 2, 3}, *gradient, nullptr));
  return {inside, alone};
}

TEST(linear_and_relu, are_one_step_where_nothing_else_reads_what_is_between_them) {
  using pair = std::pair<int, int>;
  const std::string linear = "layers { linear { out_features: 4 } } ", relu = "layers { relu {} } ";
  for (const auto arithmetic :
       {kernels::cuda::precision::fp32, kernels::cuda::precision::tf32, kernels::cuda::precision::bf16}) {
    EXPECT_EQ(relus_of(linear + relu + linear + relu + linear, arithmetic), (pair{2, 0}));
    EXPECT_EQ(relus_of(linear + relu, arithmetic), (pair{1, 0})) << "of the outputs";
    EXPECT_EQ(relus_of("layers { linear { out_features: 4 bias: false } } " + relu + linear, arithmetic),
              (pair{1, 0}));
    EXPECT_EQ(relus_of(linear + relu + relu + linear, arithmetic), (pair{1, 1}));
    EXPECT_EQ(relus_of(relu + linear, arithmetic), (pair{0, 1}));
    EXPECT_EQ(relus_of("layers { name: 'a' linear { out_features: 4 } } layers { name: 'b' relu {} } "
                       "layers { inputs: ['a', 'b'] add {} } ",
                       arithmetic),
              (pair{0, 1}))
        << "add reads it too";
  }
}

} // namespace
} // namespace dlrun::engine
