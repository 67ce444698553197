/// Softmax cross-entropy over rows of class scores.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// What one microbatch contributes to the metrics.
struct classification_sums {
  double loss = 0;          ///< sum over the rows of -log softmax(scores)[label]
  std::int64_t correct = 0; ///< rows whose greatest score (the first of equals) is the label's
};

/// `scores` is (rows, classes), `labels` (rows) with values in [0, classes): the caller has checked them.
/// Writes d(sum of the rows' losses)/d scores into `gradient`, same shape, unless that span is empty.
/// The loss of a row is taken in double; rows are added in order.
classification_sums cross_entropy(std::span<const float> scores, std::span<const std::int32_t> labels,
                                  std::int64_t classes, std::span<float> gradient);

} // namespace dlrun::kernels::cpu
