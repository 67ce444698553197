#include "actors/worker/straggler_help.hpp"

namespace dlrun::worker {

using protocol::slot_range;
using protocol::time_point;

void straggler_help::hear(const protocol::shard_state& state) {
  if (!state.lacks.empty()) lacking_ = {step_from(state.applied), state.lacks};
}

void straggler_help::on_computed(step_id step, slot_range slots, protocol::duration took) {
  late_.note_slot(took / slots.size());
  if (lacking_ && lacking_->first == step && lacking_->second.contains(slots)) late_.helped();
}

std::optional<slot_range> straggler_help::next_missing(step_id step, const work_share& share,
                                                       const kept_gradients& kept,
                                                       const slot_warnings& warnings) const {
  if (const auto own = share.next_missing(step, kept, warnings)) return own;
  if (!share.may_help() || !lacking_ || lacking_->first != step) return std::nullopt;
  return kept.first_missing(step, lacking_->second, warnings.parked_in(step, lacking_->second));
}

/// At first all ask the same one of those that the step waits for, so that it can share out what is
/// to be done. What it keeps is bounded: beyond that it waits for the division of slots.
void straggler_help::look_for_more(protocol::pull asking, const work_share& share,
                                   const shard_standings& shards, time_point now, worker_actions& out) {
  if (late_.times_helped() >= share.nodes_max(asking.step)) return;
  late_.wait(share.has_part_of(asking.step), now);
  if (now >= late_.due()) {
    asking.tries = late_.ask(now);
    std::vector<ps_shard_id> behind;
    for (const auto& [id, shard] : shards.all())
      if (step_from(shard.applied) == asking.step) behind.push_back(id);
    out.emplace_back(send_pull{behind[(asking.tries - 1) % behind.size()], asking});
  }
  if (wakes_at_ && now < *wakes_at_ && *wakes_at_ <= late_.due()) return;
  wakes_at_ = late_.due();
  out.emplace_back(wake{late_.due() - now});
}

} // namespace dlrun::worker
