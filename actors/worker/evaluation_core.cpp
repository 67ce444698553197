#include "actors/worker/evaluation_core.hpp"

#include <dlrun/check.hpp>

namespace dlrun::worker {

evaluation_actions evaluation_core::on_order(const protocol::evaluate& order, timeline_id current) {
  if (order.timeline != current) return {};
  if (result_ && result_->timeline == order.timeline && result_->version == order.version)
    return {send_evaluated{*result_}}; // the answer was lost
  evaluation_actions out;
  if (order_ != order) {
    order_ = order;
    parts_.clear();
    if (running_) out.emplace_back(cancel_evaluation{});
  }
  if (running_) return out;
  for (ps_shard_id shard{0}; shard.value < ps_shards_; ++shard.value)
    if (!parts_.contains(shard)) out.emplace_back(get_snapshot_part{shard, order});
  return out;
}

bool evaluation_core::wants(ps_shard_id shard, const protocol::evaluate& of) const {
  return !running_ && order_ == of && shard.value < ps_shards_ && !parts_.contains(shard);
}

evaluation_actions evaluation_core::on_part(ps_shard_id shard, const protocol::evaluate& of) {
  if (!wants(shard, of)) return {};
  parts_.insert(shard);
  if (parts_.size() < ps_shards_) return {};
  running_ = true;
  return {run_evaluation{of}};
}

evaluation_actions evaluation_core::on_result(const std::optional<protocol::evaluated>& result) {
  DLRUN_CHECK(running_, "a result of an evaluation that was not asked for");
  running_ = false;
  parts_.clear(); // the memory is written to again for the next
  const bool is_wanted =
      result && order_ && result->timeline == order_->timeline && result->version == order_->version;
  if (!is_wanted) return {};
  result_ = result;
  return {send_evaluated{*result}};
}

} // namespace dlrun::worker
