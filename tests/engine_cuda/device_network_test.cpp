// Whole models on a device, against the same on the processor.
#include "engine/cuda/cuda_computer.hpp"
#include "engine/network.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/engine/gradient_cases.hpp"

#include <cmath>

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

} // namespace
} // namespace dlrun::engine
