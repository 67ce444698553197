#include "actors/ps_shard/timeline_plan.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

timeline_plan::timeline_plan(std::shared_ptr<const ps_shard_core_config> config)
    : config_(std::move(config)) {
  DLRUN_CHECK(config_->slots_of && config_->records_of, "a PS shard must know the shape of a step");
}

void timeline_plan::restart(protocol::history history) {
  DLRUN_CHECK(is_valid(history), "a store has a history");
  history_ = std::move(history);
  parked_ = parked_slots(history_);
}

std::vector<slot_id> timeline_plan::parked_in(step_id step) const {
  return protocol::parked_whole(parked_, step);
}

std::uint64_t timeline_plan::records_of(step_id step, slot_id slot) const {
  const auto records = config_->records_of(step, slot);
  if (is_planted(config_->bug, protocol::planted_bug::count_parked) &&
      !protocol::is_parked(parked_, step, slot))
    return records;
  return protocol::records_left(parked_, step, slot, records);
}

std::vector<std::uint64_t> timeline_plan::records_in(step_id step) const {
  std::vector<std::uint64_t> records(config_->slots_of(step));
  for (std::uint32_t slot = 0; slot < records.size(); ++slot) records[slot] = records_of(step, {slot});
  return records;
}

bool timeline_plan::fits(const protocol::push& push) const {
  if (!protocol::reduction_tree(config_->slots_of(push.step)).is_node(push.slots)) return false;
  std::uint64_t records = 0;
  for (auto slot = push.slots.begin; slot < push.slots.end; ++slot.value)
    records += records_of(push.step, slot);
  return records == push.records;
}

} // namespace dlrun::ps_shard
