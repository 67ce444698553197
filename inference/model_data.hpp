/// Between a model and the records of its job: do they fit, and how other records are read like
/// them.
#pragma once

#include "data/job_data.hpp"
#include "engine/model.hpp"
#include "proto/job_spec.pb.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::inference {

/// What a model's loss compares its outputs with.
struct wanted_targets {
  target_kind kind = target_kind::classes;
  std::int64_t outputs = 0; ///< classes that are told apart, or floats of a target
};
wanted_targets targets_of(const engine::model& model);
/// Can `model` read these records, and its loss take their targets? @returns bad_data, as the
/// checks of dataset.
result<void> check_fits(const data::dataset& data, const engine::model& model);

/// How many records the job trains on: those that are not split off. The data is decoded for it.
/// @returns as data::decode_job_data().
result<std::uint64_t> training_records(const spec::JobSpec& spec, const engine::model& model);

/// Records to predict for.
struct prediction_input {
  std::shared_ptr<const data::dataset> records;
  std::vector<std::string> class_names; ///< as the training data has them; empty where it has none
};
/// The records of `file`, read as the job reads its training data: format, columns and
/// normalisation are the same; targets are not asked for. `is_filled`: `spec` has what the training
/// data taught, as the specification of a run has; else a table's is read for it. @returns as
/// data::open_records(); bad_data when the records do not fit the model.
result<prediction_input> open_input(const spec::JobSpec& spec, bool is_filled, const engine::model& model,
                                    const std::filesystem::path& file);

} // namespace dlrun::inference
