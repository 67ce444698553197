/// Metrics of a model on a data set, as a training computes them.
#pragma once

#include "data/dataset.hpp"
#include "runtime/model_source.hpp"
#include <dlrun/report.hpp>

namespace dlrun::cli {

/// Goes through `data` in file order, in microbatches of the job's size, and adds their sums in that order:
/// the same bits as in report.json of a run that ends with these parameters, whatever `threads` (at least 1)
/// is. @returns bad_data when the data does not fit the model.
result<dlrun::validation_metrics> evaluate(const runtime::given_model& model, const data::dataset& data,
                                           std::size_t threads);

/// The validation data of the job that the model belongs to. All data is decoded as for a training: what the
/// training data teaches (vocabularies, means, the split) says how validation data is read.
/// @returns bad_usage for a job without any, and as data::decode_job_data().
result<std::shared_ptr<const data::dataset>> open_validation(const runtime::given_model& model);

/// How many threads to compute microbatches on: `wanted`, or, for 0, as many as keep the processor busy.
std::size_t compute_threads(const spec::JobSpec& spec, std::size_t wanted);

} // namespace dlrun::cli
