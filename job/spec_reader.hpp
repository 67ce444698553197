/// Reads a job specification: YAML text, mapped on the messages of proto/job_spec.proto.
#pragma once

#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::job {

/// Larger files are refused unread.
inline constexpr std::size_t spec_bytes_max = 1024 * 1024;
/// Limit for files that a run wrote: they name each column of a table.
inline constexpr std::size_t written_spec_bytes_max = 16 * spec_bytes_max;
/// Deeper nesting is refused.
inline constexpr int spec_depth_max = 32;

/// Reads `file`, applies `overrides` (each "path=value", e.g. "train.epochs=3",
/// "model.layers[2].dropout.p=0.1"; the value is YAML), fills defaults, makes data paths absolute
/// and validates. The result is complete: every key that has a default has a value.
/// @returns bad_spec with all problems, one a line, each naming file, line, key and where possible
/// the way out;
///          system if the file cannot be read.
result<spec::JobSpec> read_spec(const std::filesystem::path& file,
                                std::span<const std::string> overrides = {});

/// The same for text in memory. `file_name` is what errors call it and what the default job name
/// derives from; relative data paths are relative to `base_dir`, and stay so where that is "".
result<spec::JobSpec> parse_spec(std::string_view text, const std::string& file_name,
                                 const std::filesystem::path& base_dir,
                                 std::span<const std::string> overrides = {});

/// Completes a specification that a program built: overrides, defaults, absolute data paths and all
/// checks, as above. Errors call it `origin`.
result<spec::JobSpec> complete_spec(spec::JobSpec built, const std::string& origin,
                                    const std::filesystem::path& base_dir,
                                    std::span<const std::string> overrides = {});

} // namespace dlrun::job
