/// Makers of the metrics, one file a family. Each checks that it can be measured on what the loss
/// takes the outputs for, and fills in the defaults of proto/job_spec.proto.
#pragma once

#include "engine/metrics.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::engine {

using metric_result = result<std::unique_ptr<const metric>>;

/// What metrics are measured on: `width` outputs a record, of a kind.
struct measured {
  std::string loss; ///< for errors
  output_kind outputs = output_kind::class_scores;
  std::int64_t width = 1;
};

metric_result make_accuracy(const measured& on);
metric_result make_top_k(const spec::TopK& spec, const measured& on);
metric_result make_auc(const spec::Auc& spec, const measured& on);
metric_result make_precision(const spec::Precision& spec, const measured& on);
metric_result make_recall(const spec::Recall& spec, const measured& on);
metric_result make_mae(const measured& on);
/// A metric that the program registered (dlrun/metric.hpp).
metric_result make_custom(const spec::Custom& spec, const measured& on);

/// bad_spec: "metric <name>: <what>".
tl::unexpected<error> metric_error(const char* name, const std::string& what);
/// The same for a metric that the loss has no outputs for; `instead` names some that it has.
tl::unexpected<error> unmeasurable(const char* name, const measured& on, const char* instead);

/// A number that is not there yet.
double not_measured();

} // namespace dlrun::engine
