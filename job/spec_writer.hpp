/// Writes a job specification as YAML.
#pragma once

#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>
#include <filesystem>
#include <string>
#include <string_view>

namespace dlrun::job {

/// YAML that read_spec accepts and turns into the identical message.
std::string write_spec(const spec::JobSpec& spec);

/// The value of one key, which must be set, as YAML on one line; of a list its place `index`, or
/// the whole for -1.
std::string write_value(const google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field, int index = -1);

/// The first line of a file that write_spec_file() wrote: it names everything that data taught, so
/// read_spec() takes a larger one.
inline constexpr std::string_view written_head =
    "# The specification as used: overrides applied, defaults filled, paths absolute.\n";
/// That line and write_spec().
std::string written_spec(const spec::JobSpec& spec);

/// Writes that to `file`, which appears whole or not at all.
result<void> write_spec_file(const std::filesystem::path& file, const spec::JobSpec& spec);

} // namespace dlrun::job
