/// Writes a job specification as YAML.
#pragma once

#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>
#include <filesystem>
#include <string>

namespace dlrun::job {

/// YAML that read_spec accepts and turns into the identical message.
std::string write_spec(const spec::JobSpec& spec);

/// Writes it to `file`, which appears whole or not at all.
result<void> write_spec_file(const std::filesystem::path& file, const spec::JobSpec& spec);

} // namespace dlrun::job
