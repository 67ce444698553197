/// The numbers of an evaluation, and those that the specification goes by.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/protocol/watched_metric.hpp"

#include <optional>
#include <string>

namespace dlrun::common {

/// What an evaluation came to.
struct evaluation_values {
  double loss = 0;      ///< mean over the records; NaN without records
  named_values metrics; ///< in the order of the specification
};
evaluation_values values_of(const engine::model& model, const protocol::evaluated& result);

/// "loss" or one of the model's metrics. `mode` is min, max, or auto: min for loss and mae, max for
/// the others.
/// @returns bad_spec, naming those there are, for another name; `key` is where it stands.
result<protocol::watched_metric> watched_metric_from(const engine::model& model, const std::string& name,
                                                     const std::string& mode, const std::string& key);

/// That of train.keep_best, of a job whose specification was checked (check_watched_metrics());
/// nothing when it is not written.
std::optional<protocol::watched_metric> best_metric(const job_context& job);

/// Whether the metrics that the specification goes by are the model's. @returns bad_spec.
result<void> check_watched_metrics(const engine::model& model, const spec::TrainSpec& train);

} // namespace dlrun::common
