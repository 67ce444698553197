#include "runtime/missing_stores.hpp"

#include "actors/common/held_store.hpp"
#include "actors/common/history_conversion.hpp"
#include "actors/common/patience.hpp"
#include "job/choices.hpp"
#include "job/report_file.hpp"
#include "job/run_layout.hpp"
#include "runtime/kept_stores.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <fmt/ranges.h>

namespace dlrun::runtime {
namespace {

/// Another process may look at it too, as `dlrun status` of a run that has just ended.
/// @returns nothing where there is no store of that run; other errors as look_at_held_store()
result<std::optional<protocol::held_store>> look_at(const std::filesystem::path& run_dir, ps_shard_id shard,
                                                    std::uint64_t run) {
  const auto found = common::try_patiently(common::patience_with_the_dying, {},
                                           [&] { return common::look_at_held_store(run_dir, shard, run); });
  if (found) return *found;
  if (found.error().code == error_code::bad_usage) return std::nullopt;
  return tl::unexpected(found.error());
}

/// For people, of a run that is complete.
std::string tell_unknown(const std::filesystem::path& run_dir, const error& why) {
  return fmt::format(
      "the run in '{}' is trained to its end, and whether all of its model is there nobody can "
      "tell: {}; '{}' looks again when that is mended",
      run_dir.string(), why.message, resume_command(run_dir));
}

/// @param ended null: the run is not over
agent::last_stores needed_of(const records::RunRecord& record, const dlrun::report* ended,
                             const coordinator::store_book::stores& known) {
  const auto& spec = *record.revisions().rbegin();
  agent::last_stores last{.ps_shards = 0}; // there are none with durability.log: off
  if (job::durability_log_of(spec) != job::durability_log::off)
    last.ps_shards = static_cast<std::uint32_t>(spec.cluster().ps_shards());
  if (ended == nullptr || ended->status != run_status::completed) return last;
  // A PS shard may have applied more than the evaluation that ended the training, and lose that
  // again.
  const bool ended_early = ended->stopped_early && !ended->evaluations.empty();
  last.version = {ended_early ? ended->evaluations.back().step : ended->steps};
  for (const auto& [shard, one] : known) last.timeline = std::max(last.timeline, one.timeline);
  return last;
}

} // namespace

agent::last_stores any_stores_of(const records::RunRecord& record) { return needed_of(record, nullptr, {}); }

result<agent::last_stores> last_stores_of(const std::filesystem::path& run_dir,
                                          const records::RunRecord& record,
                                          const coordinator::store_book::stores& known) {
  const auto report = job::find_report(run_dir / run_layout::report);
  if (!report) return tl::unexpected(report.error());
  return needed_of(record, *report ? &**report : nullptr, known);
}

result<std::vector<ps_shard_id>> missing_stores(const std::filesystem::path& run_dir,
                                                const records::RunRecord& record, agent::last_stores last) {
  std::vector<ps_shard_id> missing;
  if (record.hosts().empty()) return missing;
  std::vector<protocol::held_store> there;
  for (ps_shard_id shard{0}; shard.value < last.ps_shards; ++shard.value) {
    const auto found = look_at(run_dir, shard, record.run());
    if (!found) return tl::unexpected(found.error());
    if (*found)
      there.push_back(**found);
    else
      missing.push_back(shard);
  }
  if (last.version == version_id{0}) return missing;
  for (const auto& one : there) last.timeline = std::max(last.timeline, one.timeline);
  for (const auto& one : there)
    if (!holds(&one, last)) missing.push_back(one.shard);
  std::ranges::sort(missing);
  return missing;
}

std::string folders_of_stores(const std::vector<ps_shard_id>& shards) {
  std::vector<std::string> names;
  for (const auto shard : shards) names.push_back(common::store_directory({}, shard).filename().string());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string tell_stores(const std::vector<ps_shard_id>& shards,
                        const result<coordinator::store_book::stores>& known) {
  std::vector<std::string> all;
  for (const auto shard : shards) {
    const auto found = known ? known->find(shard) : coordinator::store_book::stores::const_iterator{};
    const bool is_known = known && found != known->end() && !found->second.store.host.empty();
    all.push_back(is_known ? fmt::format("PS shard {} (last on host {})", shard, found->second.store.host)
                           : fmt::format("PS shard {}", shard));
  }
  return fmt::format("{}{}", fmt::join(all, ", "),
                     known ? "" : fmt::format(" (on which host is not known: {})", known.error().message));
}

std::string tell_not_whole(const std::filesystem::path& run_dir, const records::RunRecord& record,
                           const std::vector<ps_shard_id>& missing,
                           const result<coordinator::store_book::stores>& known) {
  return fmt::format(
      "the run in '{0}' is trained to its end, and a part of its model is still on other hosts: {1}; the run "
      "had the hosts {2}; '{4}' brings it when they are there, or copy {3} from "
      "their folders into '{0}'",
      run_dir.string(), tell_stores(missing, known), tell_hosts(record), folders_of_stores(missing),
      resume_command(run_dir));
}

std::string why_not_here(const std::filesystem::path& run_dir) {
  const auto record = read_record(run_dir);
  if (!record) return record.error().message;
  const auto known = kept_stores(run_dir);
  if (!known) return known.error().message;
  const auto run = *record ? (*record)->run() : 0;
  std::vector<ps_shard_id> missing;
  for (const auto& [shard, last] : *known) {
    const auto found = look_at(run_dir, shard, run);
    if (!found) return found.error().message;
    const agent::last_stores all{.version = newest_of(last), .timeline = last.timeline};
    if (!*found || (*found)->opener < last.opener || !holds(&**found, all)) missing.push_back(shard);
  }
  return missing.empty() ? "" : fmt::format("on hosts alone: {}", tell_stores(missing, *known));
}

std::string why_not_whole(const std::filesystem::path& run_dir, const dlrun::report& ended) {
  if (ended.status != run_status::completed) return "";
  const auto record = read_record(run_dir);
  if (!record) return tell_unknown(run_dir, record.error());
  if (!*record) return "";
  const auto known = kept_stores(run_dir);
  const auto last = needed_of(**record, &ended, known ? *known : coordinator::store_book::stores{});
  const auto missing = missing_stores(run_dir, **record, last);
  if (!missing) return tell_unknown(run_dir, missing.error());
  return missing->empty() ? "" : tell_not_whole(run_dir, **record, *missing, known);
}

std::optional<std::string> why_not_whole(const std::filesystem::path& run_dir) {
  const auto report = job::find_report(run_dir / run_layout::report);
  if (!report) return tell_unknown(run_dir, report.error());
  if (!*report || (*report)->status != run_status::completed) return std::nullopt;
  return why_not_whole(run_dir, **report);
}

} // namespace dlrun::runtime
