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
  /// Of each revision of a resumed run, as common::update_part() makes them; else empty.
  std::vector<spec::TrainSpec> revisions;
  std::uint64_t train_records = 0;
  std::uint64_t validation_records = 0;
  std::uint64_t steps = 0;
  std::uint64_t parameter_count = 0; ///< trained floats
  /// The data, decoded once; roles on this host inherit these descriptors.
  std::map<std::string, transport::unique_fd> files;

  common::data_files file_descriptors() const;
};

/// Reads the specification, builds the model, opens the data and checks that they fit each other.
/// @returns bad_spec or bad_data with a message that names the place and the way out.
result<prepared_job> prepare_job(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides);

} // namespace dlrun::cli
