/// Where a PS shard's store lies, and its history between protocol and store.
#pragma once

#include "actors/protocol/timeline.hpp"
#include "persistence/log_record.hpp"

#include <filesystem>
#include <vector>

namespace dlrun::common {

/// The store of a shard in the folder of a run.
std::filesystem::path store_directory(const std::filesystem::path& run_dir, ps_shard_id shard);

/// A store keeps no entry of timeline 0, a history begins with it.
protocol::history history_from(const std::vector<persistence::history_entry>& stored);
std::vector<persistence::history_entry> history_to_store(const protocol::history& all);

} // namespace dlrun::common
