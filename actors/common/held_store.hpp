/// What the store of a PS shard in a folder holds.
#pragma once

#include "actors/protocol/host_messages.hpp"

#include <dlrun/error.hpp>
#include <filesystem>

namespace dlrun::common {

/// Looks at the store of that PS shard, which nobody has open, in the folder of a run. @returns
/// errors as persistence::look_at_store(): bad_usage where there is none.
result<protocol::held_store> look_at_held_store(const std::filesystem::path& run_dir, ps_shard_id shard);

} // namespace dlrun::common
