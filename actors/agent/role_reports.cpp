#include "actors/agent/role_reports.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::agent {

namespace {

/// A PS shard whose disk is full at its start lives, and knows nothing of what is there.
bool has_yet_to_open(const protocol::heartbeat& beat, const protocol::heartbeat& before) {
  return beat.store.identity == 0 && before.store.identity != 0;
}

} // namespace

void role_reports::hear(const protocol::heartbeat& beat) {
  if (beat.role.kind == protocol::role_kind::data_dispatcher) {
    dispatcher_ = beat;
    return;
  }
  auto& newest = heard_[beat.role];
  const auto before = std::exchange(newest, beat);
  if (has_yet_to_open(beat, before)) {
    newest.step = before.step;
    newest.durable_step = before.durable_step;
    newest.store = before.store;
    newest.restorable = before.restorable;
  }
  if (!beat.has_metrics) return;
  metrics_ = beat.metrics;
  metrics_step_ = beat.step;
}

std::string role_reports::state(const protocol::role_name& role) const {
  const auto found = heard_.find(role);
  return found == heard_.end() ? "pending" : found->second.state;
}

void role_reports::add_details(role_view& view) const {
  const auto found = heard_.find(view.role);
  if (found == heard_.end()) return;
  view.slots = found->second.slots;
  view.slots_per_second = static_cast<double>(found->second.slots_per_kilosecond) / 1000;
  view.store = found->second.store;
  view.restorable = found->second.restorable;
  view.progress = found->second.copies.progress;
}

std::uint64_t role_reports::lowest_of_ps_shards(std::uint64_t protocol::heartbeat::*step) const {
  std::optional<std::uint64_t> lowest;
  for (std::uint32_t shard = 0; shard < ps_shards_; ++shard) {
    const auto found = heard_.find(protocol::ps_shard_role({shard}));
    const auto reached = found == heard_.end() ? 0 : found->second.*step;
    lowest = std::min(lowest.value_or(reached), reached);
  }
  return lowest.value_or(0);
}

} // namespace dlrun::agent
