/// What a specification means where it says nothing.
#pragma once

#include "proto/job_spec.pb.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::job {

/// Fills every key that was not written and has a default. Defaults are those of the (rule)s in the
/// proto file, and those that follow from other keys: the job is called `default_name`, a layer by
/// its kind and position ("linear6"), the stride of a pooling layer is its kernel_size, and keys of
/// data.validation are as in data.train. Written keys stay.
void fill_defaults(spec::JobSpec& spec, std::string_view default_name);

/// A job name from a file name: its stem, characters that names may not have replaced by '-'; "job"
/// if nothing is left.
std::string default_job_name(const std::filesystem::path& file);

/// Makes relative data paths absolute, starting at `base_dir`; with "" they stay relative.
void make_paths_absolute(spec::JobSpec& spec, const std::filesystem::path& base_dir);

/// The files and folders that the job reads: records and labels of its data sets, weights to start
/// from.
std::vector<std::string> files_read_by(const spec::JobSpec& spec);

} // namespace dlrun::job
