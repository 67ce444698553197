#include "actors/common/held_store.hpp"

#include "actors/common/history_conversion.hpp"
#include "persistence/store_identity.hpp"
#include "persistence/store_look.hpp"

namespace dlrun::common {

result<protocol::held_store> look_at_held_store(const std::filesystem::path& run_dir, ps_shard_id shard,
                                                std::uint64_t run) {
  const auto found = persistence::look_at_store(store_directory(run_dir, shard).string(), run);
  if (!found) return tl::unexpected(found.error());
  return protocol::held_store{shard,      found->opener,   found->timeline,
                              found->end, found->identity, found->floor};
}

std::uint64_t run_of_stores(const std::filesystem::path& run_dir, std::uint32_t ps_shards) {
  const auto files = persistence::default_file_system();
  for (ps_shard_id shard{0}; shard.value < ps_shards; ++shard.value) {
    const auto known = persistence::read_identity(*files, store_directory(run_dir, shard).string());
    if (known && *known && (*known)->run != 0) return (*known)->run;
  }
  return 0;
}

result<void> check_stores_are_of(const std::filesystem::path& run_dir, std::uint32_t ps_shards,
                                 std::uint64_t run) {
  const auto files = persistence::default_file_system();
  for (ps_shard_id shard{0}; shard.value < ps_shards; ++shard.value)
    if (auto own = persistence::check_is_of(*files, store_directory(run_dir, shard).string(), run); !own)
      return own;
  return {};
}

} // namespace dlrun::common
