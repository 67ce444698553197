/// Metrics: what is told of a model beside its loss, as sums that can be added; also those of a
/// program's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dlrun/batch.hpp>
#include <dlrun/error.hpp>
#include <dlrun/named_values.hpp>
#include <dlrun/options.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace dlrun {

/// What a loss takes the outputs of a model for; metrics and predictions take them for the same.
enum class output_kind : std::uint8_t {
  class_scores, ///< one a class, before a softmax; classes exclude one another
  logits,       ///< each of a yes or no of its own, before a sigmoid
  values,       ///< numbers as they are
};

/// A metric whose arguments and shapes are known. Immutable and thread-safe.
class metric {
public:
  virtual ~metric() = default;
  metric() = default;
  metric(const metric&) = delete;
  metric& operator=(const metric&) = delete;

  /// Under which it is reported, e.g. "accuracy", "top5".
  virtual std::string name() const = 0;
  /// Sums that it keeps, at least 1.
  virtual std::size_t floats() const = 0;
  /// Adds the records of `batch` to `sums` (+=, floats()). `outputs` is (batch.size, outputs of a
  /// record). A sum of counts stays exact below 2^24; slots and steps are added beyond that in
  /// double.
  virtual void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const = 0;
  /// The metric of all that is in `sums` (floats()); NaN where nothing is.
  virtual double value(std::span<const double> sums) const = 0;
};

/// What a metric is made for.
struct metric_request {
  std::string loss;                                ///< e.g. "cross_entropy", for error messages
  output_kind outputs = output_kind::class_scores; ///< what the model's outputs are
  std::int64_t width = 1;                          ///< outputs of a record
  option_map options;                              ///< `options:` of the job file, as they stand
};

/// Makes a metric. @returns bad_spec naming what does not fit, and the way out.
using metric_factory = std::function<result<std::unique_ptr<const metric>>(const metric_request&)>;

/// Makes `{custom: {type: <type>, options: {...}}}` in model.metrics of a job file a metric of the
/// program's own, computed by the workers in training and evaluation alike. Thread-safe; before
/// run_role(), as register_layer(). @returns bad_usage when the name is taken or is none, or
/// run_role() was called before.
result<void> register_metric(const std::string& type, metric_factory factory);

} // namespace dlrun
