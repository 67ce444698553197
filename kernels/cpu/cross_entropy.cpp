#include "kernels/cpu/cross_entropy.hpp"

#include <cmath>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

/// Index of the greatest score, the first of equals.
std::int64_t argmax(const float* row, std::int64_t classes) {
  std::int64_t best = 0;
  for (std::int64_t c = 1; c < classes; ++c)
    if (row[c] > row[best]) best = c;
  return best;
}

/// log(sum(exp(row - max))) + max, without overflow.
double log_sum_exp(const float* row, std::int64_t classes, float max) {
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c] - max));
  return std::log(sum) + static_cast<double>(max);
}

} // namespace

classification_sums cross_entropy(std::span<const float> scores, std::span<const std::int32_t> labels,
                                  std::int64_t classes, std::span<float> gradient) {
  DLRUN_CHECK(scores.size() == labels.size() * static_cast<std::size_t>(classes),
              "{} scores for {} rows of {} classes", scores.size(), labels.size(), classes);
  DLRUN_CHECK(gradient.empty() || gradient.size() == scores.size(), "gradient of {} floats for {} scores",
              gradient.size(), scores.size());
  classification_sums sums;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const float* const row = scores.data() + r * static_cast<std::size_t>(classes);
    const std::int64_t best = argmax(row, classes);
    const double normaliser = log_sum_exp(row, classes, row[best]);
    sums.loss += normaliser - static_cast<double>(row[labels[r]]);
    sums.correct += best == labels[r] && !std::isnan(normaliser) ? 1 : 0; // a NaN is never a hit
    if (gradient.empty()) continue;
    float* const out = gradient.data() + r * static_cast<std::size_t>(classes);
    for (std::int64_t c = 0; c < classes; ++c)
      out[c] = static_cast<float>(std::exp(static_cast<double>(row[c]) - normaliser));
    out[labels[r]] -= 1.0F;
  }
  return sums;
}

} // namespace dlrun::kernels::cpu
