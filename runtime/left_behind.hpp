/// What a run that goes on without its other hosts leaves there, and what it has instead.
#pragma once

#include "proto/run_record.pb.h"

#include <dlrun/error.hpp>
#include <filesystem>
#include <string>

namespace dlrun::runtime {

/// For a run that goes on on this host alone, whose folder this process holds. A PS shard whose
/// store is on another host goes on from the older one that was set aside here, if there is one.
/// @returns for people, what that means for the run, "" where nothing is left behind; system when a
/// store that was set aside cannot be had back.
result<std::string> leave_behind(const std::filesystem::path& run_dir, const records::RunRecord& record);

} // namespace dlrun::runtime
