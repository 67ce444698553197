#include "runtime/left_behind.hpp"

#include "actors/agent/store_files.hpp"
#include "actors/common/history_conversion.hpp"
#include "runtime/missing_stores.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace dlrun::runtime {
namespace {

/// Those that have an older store from now on.
result<std::vector<ps_shard_id>> take_back(const std::filesystem::path& run_dir,
                                           const std::vector<ps_shard_id>& missing) {
  std::vector<ps_shard_id> had;
  for (const auto shard : missing) {
    const auto taken = agent::take_store_back(common::store_directory(run_dir, shard));
    if (!taken) return tl::unexpected(taken.error());
    if (*taken) had.push_back(shard);
  }
  return had;
}

} // namespace

result<std::string> leave_behind(const std::filesystem::path& run_dir, const records::RunRecord& record) {
  const auto last = last_stores_of(run_dir, record);
  if (!last) return ""; // it is told where the run goes on from
  auto missing = missing_stores(run_dir, record, *last);
  if (!missing || missing->empty()) return ""; // whoever opens a store says what is wrong with it
  const auto had = take_back(run_dir, *missing);
  if (!had) return tl::unexpected(had.error());
  std::vector<std::string> told;
  std::erase_if(*missing, [&](const auto shard) { return std::ranges::find(*had, shard) != had->end(); });
  if (!had->empty())
    told.push_back(fmt::format("PS shard {} goes on from an older store that is in '{}'",
                               fmt::join(*had, ", "), run_dir.string()));
  if (!missing->empty())
    told.push_back(fmt::format("PS shard {} has no store in '{}' and begins empty", fmt::join(*missing, ", "),
                               run_dir.string()));
  return fmt::format(
      "the run had other hosts, {0}, and goes on without them: {1}, so all go back to what "
      "every PS shard can restore, if need be to the beginning; 'dlrun resume {2} --hosts FILE' "
      "goes on with what the stores on those hosts have",
      tell_hosts(record), fmt::join(told, ", and "), run_dir.string());
}

} // namespace dlrun::runtime
