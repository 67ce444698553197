#include "engine/metrics/makers.hpp"
#include "kernels/cpu/distance.hpp"

#include <cmath>

namespace dlrun::engine {
namespace {

/// Mean distance between outputs and targets; of logits, between probabilities and targets. Sums:
/// distances, then how many.
class mean_absolute_error final : public metric {
public:
  explicit mean_absolute_error(bool logits)
      : logits_(logits) {}

  std::string name() const override { return "mae"; }
  std::size_t floats() const override { return 2; }

  void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const override {
    double distances = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto output = static_cast<double>(outputs[i]);
      distances +=
          std::abs((logits_ ? kernels::cpu::sigmoid(output) : output) - static_cast<double>(batch.values[i]));
    }
    sums[0] += static_cast<float>(distances);
    sums[1] += static_cast<float>(outputs.size());
  }

  double value(std::span<const double> sums) const override {
    return sums[1] == 0 ? not_measured() : sums[0] / sums[1];
  }

private:
  bool logits_;
};

} // namespace

metric_result make_mae(const measured& on) {
  if (on.outputs == output_kind::class_scores) return unmeasurable("mae", on, "accuracy or top_k");
  return std::make_unique<mean_absolute_error>(on.outputs == output_kind::logits);
}

} // namespace dlrun::engine
