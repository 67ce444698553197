#include "own_parts.hpp"

#include <algorithm>
#include <dlrun/metric.hpp>
#include <limits>

namespace {

/// Sums: of each class first those recognised, then all.
class worst_class final : public dlrun::metric {
public:
  explicit worst_class(std::size_t classes)
      : classes_(classes) {}

  std::string name() const override { return "worst_class"; }
  std::size_t floats() const override { return 2 * classes_; }

  void add(std::span<const float> outputs, const dlrun::batch& batch, std::span<float> sums) const override {
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch.size); ++i) {
      const auto scores = outputs.subspan(i * classes_, classes_);
      const auto best = static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
      const auto wanted = static_cast<std::size_t>(batch.classes[i]);
      sums[2 * wanted] += best == wanted ? 1.0F : 0.0F;
      sums[2 * wanted + 1] += 1;
    }
  }

  double value(std::span<const double> sums) const override {
    double worst = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t one = 0; one < classes_; ++one) {
      if (sums[2 * one + 1] == 0) continue;
      const double share = sums[2 * one] / sums[2 * one + 1];
      if (!(worst <= share)) worst = share;
    }
    return worst;
  }

private:
  std::size_t classes_;
};

} // namespace

dlrun::result<void> register_worst_class() {
  using metric_result = dlrun::result<std::unique_ptr<const dlrun::metric>>;
  return dlrun::register_metric("worst_class", [](const dlrun::metric_request& request) -> metric_result {
    if (const auto fine = dlrun::check_options(request.options, {}, "metric worst_class"); !fine)
      return tl::unexpected(fine.error());
    if (request.outputs != dlrun::output_kind::class_scores)
      return dlrun::fail(dlrun::error_code::bad_spec,
                         "metric worst_class needs scores of classes, which the loss " + request.loss +
                             " does not take; cross_entropy does");
    return std::make_unique<worst_class>(static_cast<std::size_t>(request.width));
  });
}
