/// Softmax cross-entropy over rows of class scores.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// The arguments of torch.nn.CrossEntropyLoss.
struct cross_entropy_options {
  double label_smoothing = 0;       ///< share of the target that is spread over all classes, 0..1
  std::span<const double> weight{}; ///< (classes), or empty: 1 each
};

/// `scores` is (rows, classes), `labels` (rows) with values in [0, classes): the caller has checked
/// them.
/// @returns the sum over the rows, in order and in double, of the row's loss. With p =
/// softmax(scores), e = label_smoothing and C classes that is -(1 - e) weight[label] log p[label] -
/// e / C sum_c weight[c] log p[c] (torch.nn.functional.cross_entropy with reduction="sum"). Writes
/// the gradient of that sum by the scores (=), same shape, unless that span is empty.
double cross_entropy(std::span<const float> scores, std::span<const std::int32_t> labels,
                     std::int64_t classes, const cross_entropy_options& options, std::span<float> gradient);

} // namespace dlrun::kernels::cpu
