/// What the store of a PS shard in a folder holds.
#pragma once

#include "actors/protocol/host_messages.hpp"

#include <dlrun/error.hpp>
#include <filesystem>

namespace dlrun::common {

/// Looks at the store of that PS shard, which nobody has open, in the folder of a run. @param run
/// number of the run that it is to be of  @returns errors as persistence::look_at_store(): bad_usage
/// where there is none of that run.
result<protocol::held_store> look_at_held_store(const std::filesystem::path& run_dir, ps_shard_id shard,
                                                std::uint64_t run);

/// The number of the run that the first of them names that names one; 0: none does.
std::uint64_t run_of_stores(const std::filesystem::path& run_dir, std::uint32_t ps_shards);
/// Are the stores in the folder of a run, as far as there are any, of that run? @returns bad_usage,
/// naming the first that is of another one; errors as persistence::read_identity().
result<void> check_stores_are_of(const std::filesystem::path& run_dir, std::uint32_t ps_shards,
                                 std::uint64_t run);

} // namespace dlrun::common
