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

/// The value of one key, which must be set, as YAML on one line; for a list the item `index`, or
/// all items for -1.
std::string write_value(const google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field, int index = -1);

/// First line of a file that write_spec_file() wrote. Such a file names everything that was learnt
/// from data, so read_spec() allows it to be larger.
inline constexpr std::string_view written_head =
    "# The specification as used: overrides applied, defaults filled, paths absolute.\n";
/// written_head, followed by the text of write_spec().
std::string written_spec(const spec::JobSpec& spec);

/// Writes written_spec() to `file`, which appears whole or not at all.
result<void> write_spec_file(const std::filesystem::path& file, const spec::JobSpec& spec);

} // namespace dlrun::job
