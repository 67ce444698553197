#include "kernels/cpu/cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

using row = std::span<const float>;

/// log(sum(exp(scores))), without overflow.
double log_sum_exp(row scores) {
  float max = scores.front();
  for (const float score : scores)
    if (score > max) max = score;
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score - max));
  return std::log(sum) + static_cast<double>(max);
}

/// Of one row. `gradient` is empty or of the row's size.
double plain(row scores, std::size_t label, std::span<float> gradient) {
  const double normaliser = log_sum_exp(scores);
  if (!gradient.empty()) {
    for (std::size_t c = 0; c < scores.size(); ++c)
      gradient[c] = static_cast<float>(std::exp(static_cast<double>(scores[c]) - normaliser));
    gradient[label] -= 1.0F;
  }
  return normaliser - static_cast<double>(scores[label]);
}

/// The same with arguments. The target of class c is t[c] = e / C weight[c], of the label's (1 - e)
/// weight more; loss = -sum t log p, gradient = p sum(t) - t.
double with_options(row scores, std::size_t label, const cross_entropy_options& options,
                    double sum_of_weights, std::span<float> gradient) {
  const double normaliser = log_sum_exp(scores);
  const auto weight = [&](std::size_t c) { return options.weight.empty() ? 1.0 : options.weight[c]; };
  const double spread = options.label_smoothing / static_cast<double>(scores.size());
  const double own = (1 - options.label_smoothing) * weight(label);
  double loss = own * (normaliser - static_cast<double>(scores[label]));
  if (spread > 0) // else a class that is impossible (a score of -infinity) would count, with 0 * infinity
    for (std::size_t c = 0; c < scores.size(); ++c)
      loss += spread * weight(c) * (normaliser - static_cast<double>(scores[c]));
  if (gradient.empty()) return loss;
  const double total = own + spread * sum_of_weights;
  for (std::size_t c = 0; c < scores.size(); ++c) {
    const double target = spread * weight(c) + (c == label ? own : 0.0);
    gradient[c] = static_cast<float>(total * std::exp(static_cast<double>(scores[c]) - normaliser) - target);
  }
  return loss;
}

} // namespace

double cross_entropy(std::span<const float> scores, std::span<const std::int32_t> labels,
                     std::int64_t classes, const cross_entropy_options& options, std::span<float> gradient) {
  const auto width = static_cast<std::size_t>(classes);
  DLRUN_CHECK(scores.size() == labels.size() * width, "{} scores for {} rows of {} classes", scores.size(),
              labels.size(), classes);
  DLRUN_CHECK(gradient.empty() || gradient.size() == scores.size(), "gradient of {} floats for {} scores",
              gradient.size(), scores.size());
  DLRUN_CHECK(options.weight.empty() || options.weight.size() == width, "{} weights for {} classes",
              options.weight.size(), classes);
  const bool is_plain = options.weight.empty() && options.label_smoothing == 0;
  double sum_of_weights = options.weight.empty() ? static_cast<double>(classes) : 0;
  for (const double one : options.weight) sum_of_weights += one;
  double loss = 0;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const auto label = static_cast<std::size_t>(labels[r]);
    const auto row = scores.subspan(r * width, width);
    const auto out = gradient.empty() ? gradient : gradient.subspan(r * width, width);
    loss += is_plain ? plain(row, label, out) : with_options(row, label, options, sum_of_weights, out);
  }
  return loss;
}

} // namespace dlrun::kernels::cpu
