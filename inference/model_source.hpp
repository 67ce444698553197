/// A trained model in memory: from what a run has on disk, or from a weights file and its job file.
#pragma once

#include "data/recorded_data.hpp"
#include "engine/model.hpp"
#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <dlrun/model.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::inference {

/// What a run wrote down of its data; nothing of a weights file, or of a run of dlrun 0.1.
struct recorded_inputs {
  data::recorded_arrays arrays{};
  std::string other_decoders{}; ///< libraries that would decode the same files to other bits; "" when none
};

struct loaded_model {
  spec::JobSpec spec;    ///< complete, with what the choice overrides
  spec::JobSpec trained; ///< what the parameters come from: of a run its newest revision, else the job file
  std::shared_ptr<const engine::model> model;
  std::vector<float> parameters; ///< the flat vector; metrics and padding zero
  // Of a run:
  std::optional<version_id> version{};
  recorded_inputs recorded{};
  std::string parameters_sha256{};    ///< with the optimizer's state, as in report.json
  std::vector<std::string> damaged{}; ///< what was found damaged on the way, and done without
  std::vector<std::string> notes{};   ///< what else people are to be told
};

/// The folder of a run, which the caller keeps others from writing to.
struct run_source {
  std::filesystem::path folder;
  std::vector<spec::JobSpec> revisions; ///< as trained, oldest first; at least one
  spec::JobSpec as_written;             ///< the newest, with keys that change no bit as its file has them
  std::filesystem::path spec_file;      ///< that file, for errors
  std::optional<std::uint64_t> train_records{}; ///< where the run wrote it down
  recorded_inputs recorded{};
};

/// Loads a version of a run. Nothing is written. The data is opened only where steps have to be
/// made again. What `choice.overrides` changes may be anything that leaves the parameters what they
/// are, and the reading of data.train what it was (job/data_reading.hpp): data, metrics, loss.
/// @returns bad_usage for a folder that has nothing (or not that step) on disk, or is held by a PS
/// shard, and for overrides that make another model or reading; bad_spec; bad_data;
/// storage_damaged; system.
result<loaded_model> load_run(const run_source& run, const model_choice& choice);

/// Loads the weights file `choice.path`. @returns bad_usage for options that do not go together;
/// bad_spec; bad_data for a file that does not fit.
result<loaded_model> load_weights_file(const model_choice& choice);

} // namespace dlrun::inference
