#include "runtime/held_stores.hpp"

#include "actors/common/held_store.hpp"
#include "actors/common/patience.hpp"

#include <algorithm>

namespace dlrun::runtime {
std::vector<protocol::held_store> held_stores(const std::filesystem::path& folder, std::uint32_t ps_shards,
                                              std::uint64_t run,
                                              const std::vector<protocol::running_start>& running) {
  std::vector<protocol::held_store> all;
  for (ps_shard_id shard{0}; shard.value < ps_shards; ++shard.value) {
    const auto is_of = [shard](const protocol::running_start& one) {
      return one.role == protocol::ps_shard_role(shard) || protocol::keeps_copy_of(one.role, shard);
    };
    if (std::ranges::any_of(running, is_of)) continue;
    const auto found = common::try_patiently(common::patience_with_the_dying, {},
                                             [&] { return common::look_at_held_store(folder, shard, run); });
    if (found)
      all.push_back(*found);
    else if (found.error().code != error_code::bad_usage)
      all.push_back({shard, {}, {}, {}});
  }
  return all;
}

} // namespace dlrun::runtime
