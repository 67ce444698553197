/// Snapshots of a PS shard that stay while they are archived (R45), whatever becomes of its store.
#pragma once

#include "actors/protocol/archive_messages.hpp"

#include <dlrun/error.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace dlrun::agent {

/// Keeps exactly these snapshots of the store, under a second name (a hard link) beside it, and
/// lists those that the store has now. A snapshot is never changed. Never blocks for long: no byte
/// is copied. @param names of files, as "40-2.snap" @returns bad_usage where the store has no such
/// snapshot and keeps none, or is not there; system.
result<std::vector<protocol::stored_file>> keep_snapshots(const std::filesystem::path& store,
                                                          std::span<const std::string> names);

/// Bytes of one that is kept; fewer than `size` only at its end. @returns bad_usage for one that is
/// not kept, limit_exceeded for more than a part has room for, system.
result<std::string> read_kept_snapshot(const std::filesystem::path& store, const std::string& name,
                                       std::uint64_t offset, std::uint32_t size);

/// What an agent that was killed has kept of the stores in this folder. Errors are ignored.
void drop_kept_snapshots(const std::filesystem::path& folder);

} // namespace dlrun::agent
