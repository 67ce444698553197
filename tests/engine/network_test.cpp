#include "engine/network.hpp"

#include "engine/optimizer.hpp"
#include "tests/engine/spec_builder.hpp"

#include <random>

namespace dlrun::engine {
namespace {

using testing::build_model;
using testing::parse;

constexpr const char* small_mlp =
    "input: [1, 4, 4] layers { flatten {} } layers { linear { out_features: 8 } } layers { relu {} } "
    "layers { linear { out_features: 3 } }";

TEST(network, gradient_descent_learns_a_separable_problem) {
  const auto m = build_model(small_mlp);
  const auto sgd = optimizer::build(parse<spec::OptimizerSpec>("sgd { lr: 0.1 }")).value();
  std::vector<float> parameters(m->layout().flat_size()), gradient(parameters.size()), records(30 * 16);
  std::vector<std::int32_t> labels(30);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < records.size(); ++i) {
    labels[i / 16] = static_cast<std::int32_t>(i / 16 % 3);
    records[i] = static_cast<float>(random() % 100) / 100.0F + (i % 16 % 3 == i / 16 % 3 ? 1.0F : 0.0F);
  }
  m->initialise(1, parameters);
  network n(m, 1);
  const auto metrics = m->layout().metrics().offset;
  for (std::uint64_t step = 0; step < 200; ++step) {
    ASSERT_TRUE(n.forward_backward(parameters, {records, labels, 30}, {1, step, 0}, gradient));
    sgd.update({step}, 1.0F / 30, std::span(gradient).first(metrics), std::span(parameters).first(metrics),
               std::span(parameters).first(metrics), {});
  }
  EXPECT_EQ(gradient[metrics + parameter_layout::correct], 30.0F);
  EXPECT_EQ(gradient[metrics + parameter_layout::records], 30.0F);
  EXPECT_LT(gradient[metrics + parameter_layout::loss_sum], 30 * 0.1F);
}

} // namespace
} // namespace dlrun::engine
