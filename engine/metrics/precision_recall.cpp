#include "engine/metrics/makers.hpp"

#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace dlrun::engine {
namespace {

/// Which of a class' records the hits are compared with.
enum class compared : std::uint8_t { predicted, actual };

/// Of the class 1 of two, or of one output; else the mean over the classes, or outputs, that occur
/// in the data or in the predictions. Sums for each class: hits, predicted, actual.
class share_of_class final : public metric {
public:
  share_of_class(compared with, const measured& on, double threshold)
      : with_(with)
      , width_(static_cast<std::size_t>(on.width))
      , scores_(on.outputs == output_kind::class_scores)
      , only_second_(scores_ && on.width == 2)
      , logit_(std::log(threshold / (1 - threshold))) {}

  std::string name() const override { return with_ == compared::predicted ? "precision" : "recall"; }
  std::size_t floats() const override { return 3 * (only_second_ ? 1 : width_); }

  void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const override {
    for (std::size_t r = 0; r * width_ < outputs.size(); ++r) {
      const auto row = outputs.subspan(r * width_, width_);
      if (scores_)
        add_class(greatest(row), static_cast<std::size_t>(batch.classes[r]), sums);
      else
        for (std::size_t c = 0; c < width_; ++c)
          add(static_cast<double>(row[c]) > logit_, batch.values[r * width_ + c] > 0.5F, c, sums);
    }
  }

  double value(std::span<const double> sums) const override {
    double shares = 0;
    std::size_t classes = 0;
    bool is_empty = true;
    for (std::size_t c = 0; c < sums.size(); c += 3) {
      const double hits = sums[c], predicted = sums[c + 1], actual = sums[c + 2];
      if (predicted == 0 && actual == 0) continue;
      is_empty = false;
      const double all = with_ == compared::predicted ? predicted : actual;
      shares += all == 0 ? 0 : hits / all;
      ++classes;
    }
    return is_empty ? not_measured() : shares / static_cast<double>(classes);
  }

private:
  static void add(bool predicted, bool actual, std::size_t place, std::span<float> sums) {
    const auto at = sums.subspan(3 * place, 3);
    at[0] += predicted && actual ? 1.0F : 0.0F;
    at[1] += predicted ? 1.0F : 0.0F;
    at[2] += actual ? 1.0F : 0.0F;
  }

  void add_class(std::size_t predicted, std::size_t actual, std::span<float> sums) const {
    if (only_second_) return add(predicted == 1, actual == 1, 0, sums);
    add(predicted == actual, true, actual, sums);
    if (predicted != actual && predicted < width_) add(true, false, predicted, sums);
  }

  /// The first of equals; no class where a score is not a number.
  static std::size_t greatest(std::span<const float> scores) {
    std::size_t best = 0;
    for (std::size_t c = 0; c < scores.size(); ++c) {
      if (std::isnan(scores[c])) return std::numeric_limits<std::size_t>::max();
      if (scores[c] > scores[best]) best = c;
    }
    return best;
  }

  compared with_;
  std::size_t width_;
  bool scores_, only_second_;
  double logit_; ///< above it an output is a yes
};

template <class Spec>
metric_result make(const char* name, compared with, const Spec& spec, const measured& on) {
  const double threshold = spec.has_threshold() ? spec.threshold() : 0.5;
  if (!(threshold > 0 && threshold < 1))
    return metric_error(name, fmt::format("threshold {} is not between 0 and 1", threshold));
  if (on.outputs == output_kind::values) return unmeasurable(name, on, "mae");
  if (on.outputs == output_kind::class_scores && threshold != 0.5)
    return metric_error(name,
                        fmt::format("threshold {} is for the loss bce_with_logits; with {} the class of the "
                                    "greatest score is predicted; leave it out",
                                    threshold, on.loss));
  return std::make_unique<share_of_class>(with, on, threshold);
}

} // namespace

metric_result make_precision(const spec::Precision& spec, const measured& on) {
  return make("precision", compared::predicted, spec, on);
}

metric_result make_recall(const spec::Recall& spec, const measured& on) {
  return make("recall", compared::actual, spec, on);
}

} // namespace dlrun::engine
