#include "runtime/left_behind.hpp"

#include "actors/agent/store_files.hpp"
#include "actors/common/history_conversion.hpp"
#include "runtime/missing_stores.hpp"
#include "runtime/run_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::runtime {

result<left_behind> what_is_left_behind(const std::filesystem::path& run_dir,
                                        const records::RunRecord& record) {
  const auto missing = missing_stores(run_dir, record, any_stores_of(record));
  if (!missing) return tl::unexpected(missing.error());
  if (missing->empty()) return left_behind{};
  left_behind found;
  std::vector<ps_shard_id> have_none;
  for (const auto shard : *missing) {
    const auto has_older = agent::has_store_aside(common::store_directory(run_dir, shard));
    if (!has_older) return tl::unexpected(has_older.error());
    (*has_older ? found.have_older : have_none).push_back(shard);
  }
  std::vector<std::string> told;
  if (!found.have_older.empty())
    told.push_back(fmt::format("PS shard {} goes on from an older store that is in '{}'",
                               fmt::join(found.have_older, ", "), run_dir.string()));
  if (!have_none.empty())
    told.push_back(fmt::format("PS shard {} has no store in '{}' and begins empty",
                               fmt::join(have_none, ", "), run_dir.string()));
  found.text = fmt::format(
      "the run had other hosts, {0}, and goes on without them: {1}, so all go back to what every "
      "PS shard can restore, if need be to the beginning; 'dlrun resume {2} --hosts FILE' goes on "
      "with what the stores on those hosts have",
      tell_hosts(record), fmt::join(told, ", and "), run_dir.string());
  return found;
}

result<void> take_stores_back(const std::filesystem::path& run_dir, const std::vector<ps_shard_id>& shards) {
  for (const auto shard : shards)
    if (const auto taken = agent::take_store_back(common::store_directory(run_dir, shard)); !taken)
      return tl::unexpected(taken.error());
  return {};
}

} // namespace dlrun::runtime
