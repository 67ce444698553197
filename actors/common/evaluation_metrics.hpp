/// The numbers of an evaluation, and those that the specification goes by.
#pragma once

#include "actors/common/job_facts.hpp"
#include "actors/protocol/watched_metric.hpp"
#include "job/choices.hpp"

#include <optional>
#include <string>

namespace dlrun::common {

/// What an evaluation came to.
struct evaluation_values {
  double loss = 0;      ///< mean over the records; NaN without records
  named_values metrics; ///< in the order of the specification
};
evaluation_values values_of(const job_facts& job, const protocol::evaluated& result);

/// "loss" or one of `metrics`. `mode` automatic is min for loss and mae, max for the others.
/// @returns bad_spec, naming those there are, for another name; `key` is where it stands.
result<protocol::watched_metric> watched_metric_from(const std::vector<std::string>& metrics,
                                                     const std::string& name, job::metric_mode mode,
                                                     const std::string& key);

/// That of train.keep_best, of a job whose specification was checked (check_watched_metrics());
/// nothing when it is not written.
std::optional<protocol::watched_metric> best_metric(const job_facts& job);

/// Whether the metrics that the specification goes by are the model's, `metrics`. @returns
/// bad_spec.
result<void> check_watched_metrics(const std::vector<std::string>& metrics, const spec::TrainSpec& train);

} // namespace dlrun::common
