/// What is told of a model beside its loss: accuracy and its like, as sums that can be added.
#pragma once

#include "engine/batch.hpp"
#include "engine/loss.hpp"
#include "engine/shape.hpp"

#include <dlrun/error.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::engine {

/// Finished metrics by name, in the order of the specification.
using named_values = std::vector<std::pair<std::string, double>>;

/// A metric whose arguments and shapes are known. Immutable and thread-safe.
class metric {
public:
  virtual ~metric() = default;
  metric() = default;
  metric(const metric&) = delete;
  metric& operator=(const metric&) = delete;

  /// Under which it is reported, e.g. "accuracy", "top5".
  virtual std::string name() const = 0;
  /// Sums that it keeps.
  virtual std::size_t floats() const = 0;
  /// Adds the records of `batch` to `sums` (+=, floats()). `outputs` is (batch.size, outputs of a record). A
  /// sum of counts stays exact below 2^24; slots and steps are added beyond that in double.
  virtual void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const = 0;
  /// The metric of all that is in `sums` (floats()); NaN where nothing is.
  virtual double value(std::span<const double> sums) const = 0;
};

/// The metrics of a model. Sums are additive, so that those of slots and steps can be added in tree order.
class metric_set {
public:
  explicit metric_set(std::vector<std::unique_ptr<const metric>> metrics);

  /// Places in the metrics tensor, from parameter_layout::first_metric on.
  std::size_t floats() const { return floats_; }
  /// Adds a microbatch to `sums` (+=, floats()); `outputs` and `batch` as for loss::forward().
  void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const;
  /// The finished metrics of `sums`; all NaN where `sums` has not floats() values, as before the first step.
  named_values values(std::span<const double> sums) const;
  std::vector<std::string> names() const;

private:
  std::vector<std::unique_ptr<const metric>> metrics_;
  std::size_t floats_ = 0;
};

/// The metrics of `spec`; accuracy or mae where none is written (docs/spec.md). @returns bad_spec naming the
/// metric, the loss or shape it does not fit, and the way out.
result<metric_set> make_metrics(const spec::ModelSpec& spec, const shape& output, const loss& loss);

} // namespace dlrun::engine
