/// What is told of a model beside its loss: accuracy and its like, as sums that can be added.
#pragma once

#include "engine/loss.hpp"

#include <dlrun/error.hpp>
#include <dlrun/metric.hpp>
#include <dlrun/shape.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::engine {

/// The metrics of a model. Sums are additive, so that those of slots and steps can be added in tree
/// order.
class metric_set {
public:
  explicit metric_set(std::vector<std::unique_ptr<const metric>> metrics);

  /// Places in the metrics tensor, from parameter_layout::first_metric on.
  std::size_t floats() const { return floats_; }
  /// Adds a microbatch to `sums` (+=, floats()); `outputs` and `batch` as for loss::forward().
  void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const;
  /// The finished metrics of `sums`; all NaN where `sums` has not floats() values, as before the
  /// first step.
  named_values values(std::span<const double> sums) const;
  std::vector<std::string> names() const;

private:
  std::vector<std::unique_ptr<const metric>> metrics_;
  std::size_t floats_ = 0;
};

/// The metrics of `spec`; accuracy or mae where none is written (docs/spec.md). @returns bad_spec
/// naming the metric, the loss or shape it does not fit, and the way out.
result<metric_set> make_metrics(const spec::ModelSpec& spec, const shape& output, const loss& loss);

} // namespace dlrun::engine
