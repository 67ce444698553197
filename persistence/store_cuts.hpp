/// What a shard_store drops at either end: what is above a version, to go back, and what is below
/// its floor.
#pragma once

#include "persistence/store_ground.hpp"

#include <optional>
#include <span>

namespace dlrun::persistence {

/// As shard_store::rewind().
result<void> rewind_store(store_ground& on, std::span<const history_entry> history, version_id to);
/// As shard_store::drop_below().
result<void> drop_below_in(store_ground& on, version_id floor, std::optional<version_id> kept);

} // namespace dlrun::persistence
