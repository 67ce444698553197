#include "actors/common/held_store.hpp"

#include "actors/common/history_conversion.hpp"
#include "persistence/store_look.hpp"

namespace dlrun::common {

result<protocol::held_store> look_at_held_store(const std::filesystem::path& run_dir, ps_shard_id shard) {
  const auto found = persistence::look_at_store(store_directory(run_dir, shard).string());
  if (!found) return tl::unexpected(found.error());
  return protocol::held_store{shard,      found->opener,   found->timeline,
                              found->end, found->identity, found->floor};
}

} // namespace dlrun::common
