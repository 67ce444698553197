/// The stores of PS shards that are in a folder.
#pragma once

#include "actors/protocol/host_messages.hpp"

#include <filesystem>
#include <vector>

namespace dlrun::runtime {

/// Looks at those of the first `ps_shards` PS shards, in their order, but those that run. Waits a
/// few seconds for roles of an earlier start, which may still be ending. Blocks. @param run number
/// of the run that they are to be of
std::vector<protocol::held_store> held_stores(const std::filesystem::path& folder, std::uint32_t ps_shards,
                                              std::uint64_t run,
                                              const std::vector<protocol::running_start>& running = {});

} // namespace dlrun::runtime
