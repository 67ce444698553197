/// A job whose specification, model and data were checked against each other, before anything is
/// created for it.
#pragma once

#include "actors/common/job_context.hpp"
#include "observability/metrics_server.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

struct prepared_job {
  spec::JobSpec spec;
  /// What `spec` was made of, as it was given: nothing filled in that data teaches, `auto` as it
  /// was written. Nothing of a run that is only resumed.
  std::optional<spec::JobSpec> asked{};
  /// `train` of each revision of a resumed run; else empty.
  std::vector<spec::TrainSpec> revisions;
  std::uint64_t run = 0; ///< number of the run; 0: it has none yet
  std::uint64_t train_records = 0;
  std::uint64_t validation_records = 0;
  /// Of the validation data's own files: how many equal a record of the training data. Such records
  /// say nothing of unseen data. Counted for a run that begins.
  std::uint64_t validation_records_trained_on = 0;
  std::uint64_t steps = 0;
  std::uint64_t parameter_count = 0; ///< trained floats
  /// The data, decoded once; roles on this host share its memory.
  std::shared_ptr<const data::job_data> data;
  std::shared_ptr<const base::unique_fd> initial_weights; ///< train.init_from, open; null without
  /// observability.prometheus_port, open from before anything is made for the run; null without,
  /// and where nothing is to be run.
  std::shared_ptr<observability::metrics_server> metrics{};
  engine::gpu_set gpus{}; ///< that its workers use on this host; none before that is settled
};

/// Builds the model, decodes the data, opens the weights to start from, and checks that they fit
/// each other. `spec` is complete. What the data teaches (vocabularies, names of classes, means) is
/// filled into it, and so is the digest of those weights.
/// @returns bad_spec or bad_data with a message that names the place and the way out.
result<prepared_job> prepare_job(spec::JobSpec spec);
/// The same with data that was decoded from what `spec` says, elsewhere or before.
result<prepared_job> prepare_job(spec::JobSpec spec, data::job_data decoded);
/// Opens observability.prometheus_port for the run, where it is asked for. @returns bad_usage when
/// it is in use.
result<void> open_metrics_port(prepared_job& job);

/// Of a run that is to begin, as above; `dlrun validate` and `train` refuse the same. @returns
/// bad_spec also for what only a run that is resumed has.
result<prepared_job> prepare_new_job(spec::JobSpec spec);
/// The same for the specification in `file`.
result<prepared_job> prepare_new_job(const std::filesystem::path& file,
                                     const std::vector<std::string>& overrides);

} // namespace dlrun::runtime
