/// The records that a model is evaluated on, and how many of them it was trained on.
#pragma once

#include "data/dataset.hpp"
#include "inference/model_source.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace dlrun::inference {

struct evaluation_data {
  std::shared_ptr<const data::dataset> records;
  /// How many of `records` the parameters were trained on; nothing where that cannot be told.
  std::optional<std::uint64_t> trained_on{};
  std::string why_unknown{}; ///< of `trained_on`
  /// How the run's own validation data is not what the run evaluated; "" where it is, and where
  /// other data is evaluated.
  std::string changed{};
};

/// The validation data that `model.spec` names. The training data is decoded too, which may say how
/// validation data is read (vocabularies, means, the split). Where all of that is in `model.spec`,
/// as in that of a run, and the validation data has files of its own, training data that cannot be
/// read is only a reason why `trained_on` is not known.
///
/// A record was trained on when it is in data.train of `model.trained`, is not split off there, and
/// was in a step before `model.version`. Records split off from those same files are known by their
/// place; records of other files by what they hold, inputs (before data.*.normalize) and target: a
/// record that equals one that was trained on counts. A weights file counts as trained for whole
/// epochs, and slots that were left out count as trained on.
///
/// Training data that is not what `model.recorded` has tells nothing of that: `trained_on` is not
/// known. Files under other names that hold what was recorded are the run's.
/// @returns bad_usage for a job without validation data, as data::decode_job_data(), and bad_data
/// when the records do not fit the model.
result<evaluation_data> open_evaluation(const loaded_model& model);

} // namespace dlrun::inference
