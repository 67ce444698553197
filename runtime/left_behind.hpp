/// What a run that goes on without its other hosts leaves there, and what it has instead.
#pragma once

#include "proto/run_record.pb.h"

#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace dlrun::runtime {

struct left_behind {
  /// PS shards of which this host has a store that was set aside, and no newer one.
  std::vector<ps_shard_id> have_older{};
  /// For people: what that means for the run, and the way out; "" where nothing is left behind.
  std::string text{};
};

/// Of a run that is not complete and goes on on this host alone, whose folder this process holds.
/// Changes nothing. @returns errors of the first store that cannot be read
result<left_behind> what_is_left_behind(const std::filesystem::path& run_dir,
                                        const records::RunRecord& record);
/// The stores that were set aside are in their places again. @returns system
result<void> take_stores_back(const std::filesystem::path& run_dir, const std::vector<ps_shard_id>& shards);

} // namespace dlrun::runtime
