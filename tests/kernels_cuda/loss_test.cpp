#include "kernels/cpu/cross_entropy.hpp"
#include "kernels/cpu/distance.hpp"
#include "tests/kernels_cuda/same_on_all.hpp"

#include <array>
#include <utility>

namespace dlrun::kernels::cuda {
namespace {

/// A loss and the gradient, which is empty where none is asked for.
using losses = std::pair<double, floats>;

/// What step_of(there, loss, gradient) computes: the same bits on all devices.
template <class Step>
losses computed(std::int64_t count, bool with_gradient, Step step_of) {
  const auto all = same_on_all([&](on_device& there) {
    double* const loss = there.room<double>(1);
    float* const gradient = with_gradient ? there.room<float>(count) : nullptr;
    there.run(step_of(there, loss, gradient));
    auto numbers = there.get(loss, 1);
    for (const float one : get_or_none(there, gradient, count)) numbers.push_back(one);
    return numbers;
  });
  return {all.front(), floats(all.begin() + 1, all.end())};
}

void expect_losses(const losses& got, const losses& wanted) {
  expect_close(doubles{got.first}, doubles{wanted.first}, 1e-12);
  expect_close(got.second, wanted.second, 1e-6);
}

// ---- cross_entropy

std::vector<std::int32_t> drawn_labels(const matrix& m) {
  std::mt19937 random(7);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(m.rows));
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % static_cast<unsigned>(m.columns));
  return labels;
}

doubles drawn_weights(std::int64_t count, unsigned seed) {
  doubles weights;
  for (const float one : ordinary_floats(count, seed)) weights.push_back(0.1 + std::abs(one));
  return weights;
}

/// Compares cross_entropy of `scores` to its twin, with and without what it may lack.
void check_cross_entropy(const matrix& m, const floats& scores, const doubles& smoothings = {0.0, 0.1, 1.0}) {
  const auto labels = drawn_labels(m);
  for (const double smoothing : smoothings)
    for (const auto& weight : {doubles{}, drawn_weights(m.columns, 3)})
      for (const bool with_gradient : {true, false}) {
        SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns << " smoothed by " << smoothing
                                        << (weight.empty() ? "" : ", weighted"));
        floats gradient(with_gradient ? scores.size() : 0);
        const double loss = cpu::cross_entropy(scores, labels, m.columns, {smoothing, weight}, gradient);
        const auto got = computed(std::ssize(scores), with_gradient,
                                  [&](on_device& there, double* to_loss, float* to_gradient) {
                                    return cross_entropy{m.rows,
                                                         m.columns,
                                                         smoothing,
                                                         put_or_null(there, weight),
                                                         there.put(scores),
                                                         there.put(labels),
                                                         to_loss,
                                                         to_gradient};
                                  });
        expect_losses(got, {loss, gradient});
      }
}

TEST(cross_entropy, is_what_its_twin_computes) {
  for (const matrix m : {matrix{0, 3}, {1, 1}, {9, 1}, {1, 2}, {300, 2}, {5, 10}, {129, 10}, {3, 33}})
    check_cross_entropy(m, ordinary_floats(m.rows * m.columns, 1));
  for (const matrix m : {matrix{7, 1000}, {2, 4200}})
    check_cross_entropy(m, ordinary_floats(m.rows * m.columns, 1), {0.1});
}

TEST(cross_entropy, of_great_infinite_and_missing_scores_is_as_its_twin) {
  for (const float odd : {NAN, INFINITY, -INFINITY, 3e38F, -3e38F})
    for (const std::int64_t place : {0, 1, 5}) {
      floats scores = ordinary_floats(12, 2);
      scores[static_cast<std::size_t>(place)] = odd;
      check_cross_entropy({2, 6}, scores);
    }
}

TEST(cross_entropy, an_impossible_class_that_nobody_wants_costs_nothing) {
  const auto [loss, gradient] = computed(2, true, [&](on_device& there, double* to_loss, float* to_gradient) {
    return cross_entropy{1,
                         2,
                         0,
                         nullptr,
                         there.put(floats{4, -INFINITY}),
                         there.put(std::vector<std::int32_t>{0}),
                         to_loss,
                         to_gradient};
  });
  EXPECT_EQ(loss, 0);
  EXPECT_EQ(gradient, (floats{0, 0}));
}

// ---- distance

double twin_of(const distance& what, const matrix& m, const floats& outputs, const floats& targets,
               const doubles& pos_weight, floats& gradient) {
  const auto width = static_cast<std::size_t>(m.columns);
  switch (what.kind) {
  case distance_kind::bce_with_logits:
    return cpu::bce_with_logits(outputs, targets, width, pos_weight, gradient);
  case distance_kind::mse: return cpu::mse(outputs, targets, width, gradient);
  case distance_kind::l1: return cpu::l1(outputs, targets, width, gradient);
  case distance_kind::huber: break;
  }
  return cpu::huber(outputs, targets, width, what.delta, gradient);
}

void check_distance(distance_kind kind, const matrix& m, const doubles& pos_weight, const floats& outputs,
                    const floats& targets) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << " of " << m.rows << " x "
                                  << m.columns << " with " << pos_weight.size() << " weights");
  distance what{kind,    m.rows,  m.columns, 0.75,   nullptr, std::ssize(pos_weight),
                nullptr, nullptr, nullptr,   nullptr};
  for (const bool with_gradient : {true, false}) {
    floats gradient(with_gradient ? outputs.size() : 0);
    const double loss = twin_of(what, m, outputs, targets, pos_weight, gradient);
    const auto got = computed(std::ssize(outputs), with_gradient,
                              [&](on_device& there, double* to_loss, float* to_gradient) {
                                what.pos_weight = put_or_null(there, pos_weight);
                                what.outputs = there.put(outputs);
                                what.targets = there.put(targets);
                                what.loss = to_loss;
                                what.gradient = to_gradient;
                                return what;
                              });
    expect_losses(got, {loss, gradient});
    if (kind != distance_kind::bce_with_logits) expect_same_bits(got.second, gradient);
  }
}

constexpr std::array all_distances{distance_kind::bce_with_logits, distance_kind::mse, distance_kind::l1,
                                   distance_kind::huber};

TEST(distance, is_what_its_twin_computes) {
  for (const matrix m : {matrix{0, 3}, {1, 1}, {700, 1}, {5, 3}, {9, 40}, {3, 1000}, {1500, 4}})
    for (const auto kind : all_distances) {
      const auto outputs = ordinary_floats(m.rows * m.columns, 1);
      auto targets = ordinary_floats(m.rows * m.columns, 2);
      if (kind == distance_kind::bce_with_logits)
        for (float& target : targets) target = std::min(std::abs(target) / 4, 1.0F);
      check_distance(kind, m, {}, outputs, targets);
      if (kind != distance_kind::bce_with_logits) continue;
      check_distance(kind, m, drawn_weights(1, 3), outputs, targets);
      check_distance(kind, m, drawn_weights(m.columns, 3), outputs, targets);
    }
}

TEST(distance, of_equal_great_infinite_and_missing_outputs_is_as_its_twin) {
  for (const auto kind : all_distances)
    for (const float odd : {0.5F, 200.0F, -200.0F, 3e38F, INFINITY, -INFINITY, NAN}) {
      floats outputs = ordinary_floats(6, 1);
      outputs[4] = odd;
      check_distance(kind, {2, 3}, {}, outputs, floats(6, 0.5F));
    }
}

TEST(distance, has_no_limit_of_elements) {
  const matrix m{200, 3001}; // more than a grid has threads
  check_distance(distance_kind::mse, m, {}, ordinary_floats(m.rows * m.columns, 1),
                 ordinary_floats(m.rows * m.columns, 2));
}

} // namespace
} // namespace dlrun::kernels::cuda
