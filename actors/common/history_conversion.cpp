#include "actors/common/history_conversion.hpp"

#include "job/run_layout.hpp"

namespace dlrun::common {

protocol::history history_from(const std::vector<persistence::history_entry>& stored) {
  auto all = protocol::first_history();
  for (const auto& entry : stored) {
    if (entry.timeline.value == 0) continue;
    protocol::timeline_entry one{entry.timeline, entry.branch, entry.spec_revision, {}};
    for (const auto& parked : entry.parked)
      one.parked.push_back({parked.step, parked.slot, parked.record_after - 1}); // 0 becomes all_records
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<persistence::history_entry> history_to_store(const protocol::history& all) {
  std::vector<persistence::history_entry> stored;
  for (const auto& entry : all) {
    persistence::history_entry one{entry.timeline, entry.branch, entry.revision, {}};
    for (const auto& parked : entry.parked)
      one.parked.push_back({parked.step, parked.slot, parked.record + 1}); // all_records becomes 0
    stored.push_back(std::move(one));
  }
  return stored;
}

std::filesystem::path store_directory(const std::filesystem::path& run_dir, ps_shard_id shard) {
  return run_dir / fmt::format("{}{}", run_layout::store_prefix, shard);
}

} // namespace dlrun::common
