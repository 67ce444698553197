/// Metrics of a model on a data set, as a training computes them.
#pragma once

#include "cli/model_source.hpp"
#include "data/dataset.hpp"
#include "job/report.hpp"

namespace dlrun::cli {

/// Goes through `data` in file order, in microbatches of the job's size, and adds their sums in that order:
/// the same bits as in report.json of a run that ends with these parameters, whatever `threads` (at least 1)
/// is. @returns bad_data when the data does not fit the model.
result<job::validation_metrics> evaluate(const given_model& model, const data::dataset& data,
                                         std::size_t threads);

/// How many threads to compute microbatches on: `wanted`, or, for 0, as many as keep the processor busy.
std::size_t compute_threads(const spec::JobSpec& spec, std::size_t wanted);

} // namespace dlrun::cli
