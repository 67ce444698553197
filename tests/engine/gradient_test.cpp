// Every layer's gradient against central differences of a float64 reference of its forward pass. A
// layer's gradient with respect to its input is covered by the parameters of a layer before it.
#include "engine/network.hpp"
#include "tests/engine/gradient_cases.hpp"
#include "tests/engine/reference_network.hpp"

#include <cmath>

namespace dlrun::engine {
namespace {

using testing::build_model;
using testing::gradient_case;
using testing::random_problem;
using testing::reference_network;

class gradient : public ::testing::TestWithParam<gradient_case> {};

TEST_P(gradient, equals_central_differences_in_float64) {
  const auto m = build_model(GetParam().specification);
  const reference_network reference(GetParam().specification);
  const random_problem p(*m, GetParam().batch, GetParam().whole);
  const slot_key key{5, 6, 7};
  std::vector<float> computed(p.parameters.size());
  network n(m, 1);
  ASSERT_TRUE(n.forward_backward(
      p.parameters, {p.records, p.labels, {}, static_cast<std::int64_t>(GetParam().batch)}, key, computed));

  std::vector<double> parameters(p.parameters.begin(), p.parameters.end());
  const std::vector<double> records(p.records.begin(), p.records.end());
  const double loss = reference.loss(parameters, records, p.labels, key);
  EXPECT_NEAR(computed[m->layout().metrics().offset], loss, 1e-5 * std::abs(loss));
  constexpr double h = 1e-6;
  for (const auto& tensor : m->layout().tensors()) {
    if (tensor.kind != tensor_kind::parameter) continue;
    for (std::uint64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      const double at = parameters[i];
      parameters[i] = at + h;
      const double above = reference.loss(parameters, records, p.labels, key);
      parameters[i] = at - h;
      const double below = reference.loss(parameters, records, p.labels, key);
      parameters[i] = at;
      const double expected = (above - below) / (2 * h);
      ASSERT_NEAR(computed[i], expected, 2e-4 * std::max(1.0, std::abs(expected)))
          << tensor.name << "[" << i - tensor.offset << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(of, gradient, ::testing::ValuesIn(testing::gradient_cases),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace dlrun::engine
