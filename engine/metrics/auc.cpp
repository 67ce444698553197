#include "engine/metrics/makers.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

/// Logits from -range to range are told apart, in steps of 2 range / bins; those beyond count as
/// the outermost step. Sigmoid of 16 is 1 - 1e-7, the last float below 1.
constexpr double range = 16;

/// Area under the ROC curve: the share of pairs (a yes, a no) in which the yes has the higher
/// score, pairs of equal score counting half (Hanley and McNeil 1982). Scores are equal here when
/// their logits lie in the same step, so it is off by at most half the share of the pairs for which
/// that is so. Sums, for each column: how many no in each step, then how many yes.
class area_under_curve final : public metric {
public:
  area_under_curve(std::size_t columns, std::size_t bins, bool of_two_classes)
      : columns_(columns)
      , bins_(bins)
      , of_two_classes_(of_two_classes) {}

  std::string name() const override { return "auc"; }
  std::size_t floats() const override { return columns_ * 2 * bins_; }

  void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const override {
    if (of_two_classes_) {
      for (std::size_t r = 0; r < batch.classes.size(); ++r)
        count(static_cast<double>(outputs[2 * r + 1]) - static_cast<double>(outputs[2 * r]),
              batch.classes[r] == 1, sums);
      return;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      count(static_cast<double>(outputs[i]), batch.values[i] > 0.5F,
            sums.subspan(i % columns_ * 2 * bins_, 2 * bins_));
  }

  /// Mean over the columns that have both.
  double value(std::span<const double> sums) const override {
    double sum = 0;
    std::size_t measured = 0;
    for (std::size_t column = 0; column < columns_; ++column) {
      const double area = area_of(sums.subspan(column * 2 * bins_, 2 * bins_));
      if (std::isnan(area)) continue;
      sum += area;
      ++measured;
    }
    return measured == 0 ? not_measured() : sum / static_cast<double>(measured);
  }

private:
  /// What is not a number is ranked as wrong as can be.
  void count(double logit, bool is_yes, std::span<float> sums) const {
    const auto last = static_cast<double>(bins_ - 1);
    const double step = std::floor((logit + range) / (2 * range) * static_cast<double>(bins_));
    const double place = std::isnan(step) ? (is_yes ? 0 : last) : std::clamp(step, 0.0, last);
    sums[(is_yes ? bins_ : 0) + static_cast<std::size_t>(place)] += 1.0F;
  }

  double area_of(std::span<const double> sums) const {
    double no = 0, yes = 0, ordered = 0;
    for (std::size_t bin = 0; bin < bins_; ++bin) {
      ordered += sums[bins_ + bin] * (no + sums[bin] / 2);
      no += sums[bin];
      yes += sums[bins_ + bin];
    }
    return no == 0 || yes == 0 ? not_measured() : ordered / (no * yes);
  }

  std::size_t columns_, bins_;
  bool of_two_classes_;
};

} // namespace

metric_result make_auc(const spec::Auc& spec, const measured& on) {
  const std::int64_t bins = spec.has_bins() ? spec.bins() : 512;
  if (bins < 2 || bins > 2048) return metric_error("auc", fmt::format("bins {} is not from 2 to 2048", bins));
  if (on.outputs == output_kind::values) return unmeasurable("auc", on, "mae");
  const bool scores = on.outputs == output_kind::class_scores;
  if (scores && on.width != 2)
    return metric_error("auc",
                        fmt::format("is of yes or no, but the model has {} classes; it takes 2 classes, or "
                                    "the loss bce_with_logits with an output for each class",
                                    on.width));
  return std::make_unique<area_under_curve>(scores ? 1 : static_cast<std::size_t>(on.width),
                                            static_cast<std::size_t>(bins), scores);
}

} // namespace dlrun::engine
