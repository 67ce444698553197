/// Metrics: figures of a model beside its loss, as sums that can be added; those of a program too.
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

/// How a loss interprets the outputs of a model. Metrics and predictions interpret them alike.
enum class output_kind : std::uint8_t {
  class_scores, ///< one score per class, before a softmax; a record has exactly one class
  logits,       ///< one independent yes-or-no each, before a sigmoid
  values,       ///< numbers as they are
};

/// Computes one metric from sums over records; its arguments and shapes are known. Immutable and
/// thread-safe.
class metric {
public:
  virtual ~metric() = default;
  metric() = default;
  metric(const metric&) = delete;
  metric& operator=(const metric&) = delete;

  /// The name in reports, e.g. "accuracy", "top5".
  virtual std::string name() const = 0;
  /// Number of sums that the metric needs, at least 1.
  virtual std::size_t floats() const = 0;
  /// Adds the records of `batch` to `sums` (+=, floats() of them). `outputs` is (batch.size,
  /// outputs of a record). The sums of one step are floats, so a count is exact below 2^24; steps
  /// are added up in double.
  virtual void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const = 0;
  /// The value of the metric for `sums` (floats() of them); NaN when they hold no record.
  virtual double value(std::span<const double> sums) const = 0;
};

/// What a metric_factory is asked to make.
struct metric_request {
  std::string loss;                                ///< e.g. "cross_entropy", for error messages
  output_kind outputs = output_kind::class_scores; ///< what the model's outputs are
  std::int64_t width = 1;                          ///< outputs of a record
  option_map options;                              ///< `options:` of the job file, as they stand there
};

/// Makes a metric. @returns bad_spec naming what does not fit, and the way out.
using metric_factory = std::function<result<std::unique_ptr<const metric>>(const metric_request&)>;

/// Lets a job file use a metric of the program as `{custom: {type: <type>, options: {...}}}` in
/// model.metrics. Workers compute it in training and evaluation. Thread-safe; call it before
/// run_role(). Types and errors as of register_layer().
result<void> register_metric(const std::string& type, metric_factory factory);

} // namespace dlrun
