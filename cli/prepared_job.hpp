/// A job whose specification, model and data were checked against each other, before anything is created for
/// it.
#pragma once

#include "actors/common/job_context.hpp"
#include "transport/unique_fd.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace dlrun::cli {

struct prepared_job {
  spec::JobSpec spec;
  std::vector<spec::OptimizerSpec> optimizers; ///< of each revision of a resumed run; else empty
  std::uint64_t train_records = 0;
  std::uint64_t validation_records = 0;
  std::uint64_t steps = 0;
  std::uint64_t parameter_count = 0; ///< trained floats
  /// The data, decoded once; roles on this host inherit these descriptors.
  std::map<std::string, transport::unique_fd> files;
  std::shared_ptr<const transport::unique_fd> initial_weights; ///< train.init_from, open; null without

  common::data_files file_descriptors() const;
};

/// Reads the specification, builds the model, opens the data and the weights to start from, and checks that
/// they fit each other. The specification gets the digest of those weights.
/// @returns bad_spec or bad_data with a message that names the place and the way out.
result<prepared_job> prepare_job(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides);

} // namespace dlrun::cli
