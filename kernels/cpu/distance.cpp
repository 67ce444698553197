#include "kernels/cpu/distance.hpp"

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

/// Loss of one element and its derivative by the output.
struct point {
  double value = 0;
  double slope = 0;
};

/// `at(output, target, column)` gives the point of one element.
template <class Function>
double mean_of_rows(std::span<const float> outputs, std::span<const float> targets, std::size_t width,
                    std::span<float> gradient, const Function& at) {
  DLRUN_CHECK(width > 0 && outputs.size() % width == 0 && targets.size() == outputs.size(),
              "{} outputs and {} targets in rows of {}", outputs.size(), targets.size(), width);
  DLRUN_CHECK(gradient.empty() || gradient.size() == outputs.size(), "gradient of {} floats for {} outputs",
              gradient.size(), outputs.size());
  const auto columns = static_cast<double>(width);
  double sum = 0;
  for (std::size_t row = 0; row < outputs.size(); row += width) {
    double of_row = 0;
    for (std::size_t c = 0; c < width; ++c) {
      const point p = at(static_cast<double>(outputs[row + c]), static_cast<double>(targets[row + c]), c);
      of_row += p.value;
      if (!gradient.empty()) gradient[row + c] = static_cast<float>(p.slope / columns);
    }
    sum += of_row / columns;
  }
  return sum;
}

} // namespace

double sigmoid(double x) {
  const double small = std::exp(-std::abs(x));
  return (x < 0 ? small : 1.0) / (1.0 + small);
}

double bce_with_logits(std::span<const float> outputs, std::span<const float> targets, std::size_t width,
                       std::span<const double> pos_weight, std::span<float> gradient) {
  DLRUN_CHECK(pos_weight.size() <= 1 || pos_weight.size() == width, "{} weights for {} outputs",
              pos_weight.size(), width);
  const auto weight = [&](std::size_t column) {
    if (pos_weight.empty()) return 1.0;
    return pos_weight.size() == 1 ? pos_weight.front() : pos_weight[column];
  };
  return mean_of_rows(outputs, targets, width, gradient, [&](double x, double y, std::size_t column) {
    const double factor = 1 + (weight(column) - 1) * y;
    const double minus_log_sigmoid = std::log1p(std::exp(-std::abs(x))) + std::max(-x, 0.0);
    return point{(1 - y) * x + factor * minus_log_sigmoid, (1 - y) - factor * sigmoid(-x)};
  });
}

double mse(std::span<const float> outputs, std::span<const float> targets, std::size_t width,
           std::span<float> gradient) {
  return mean_of_rows(outputs, targets, width, gradient, [](double x, double y, std::size_t) {
    return point{(x - y) * (x - y), 2 * (x - y)};
  });
}

double l1(std::span<const float> outputs, std::span<const float> targets, std::size_t width,
          std::span<float> gradient) {
  return mean_of_rows(outputs, targets, width, gradient, [](double x, double y, std::size_t) {
    const double distance = std::abs(x - y);
    return point{distance, distance == 0 ? 0.0 : (x - y) / distance};
  });
}

double huber(std::span<const float> outputs, std::span<const float> targets, std::size_t width, double delta,
             std::span<float> gradient) {
  return mean_of_rows(outputs, targets, width, gradient, [delta](double x, double y, std::size_t) {
    const double distance = std::abs(x - y);
    if (distance > delta) return point{delta * (distance - delta / 2), std::copysign(delta, x - y)};
    return point{distance * distance / 2, x - y}; // also of what is not a number
  });
}

} // namespace dlrun::kernels::cpu
