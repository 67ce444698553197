/// Decides how a worker evaluates a version: which parts to ask for, when to compute, what to
/// answer (rule R17).
#pragma once

#include "actors/protocol/dispatch_messages.hpp"

#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace dlrun::worker {

// ---- what the shell must do; in the order given

/// Get the shard's parameters of that version into memory, then call on_part(). The core may ask
/// again while this is under way, and asks again with the next order when it failed.
struct get_snapshot_part {
  ps_shard_id shard;
  protocol::evaluate of;
  bool operator==(const get_snapshot_part&) const = default;
};
/// All parts are in memory: evaluate, beside whatever else is computed, then always call
/// on_result(). The core asks for no part before that.
struct run_evaluation {
  protocol::evaluate of;
  bool operator==(const run_evaluation&) const = default;
};
/// The evaluation under way is no longer wanted: end it soon, and still call on_result().
struct cancel_evaluation {
  bool operator==(const cancel_evaluation&) const = default;
};
/// Tell the dispatcher.
struct send_evaluated {
  protocol::evaluated result;
  bool operator==(const send_evaluated&) const = default;
};

using evaluation_action = std::variant<get_snapshot_part, run_evaluation, cancel_evaluation, send_evaluated>;
using evaluation_actions = std::vector<evaluation_action>;

/// Pure: decides how a worker evaluates a version. It remembers the newest order only. A dispatcher
/// repeats its order until it has the result, so nothing here needs a timer, and any message may be
/// lost.
class evaluation_core {
public:
  explicit evaluation_core(std::uint32_t ps_shards)
      : ps_shards_(ps_shards) {}

  /// Of timeline `current`, where this worker is; any other is ignored.
  evaluation_actions on_order(const protocol::evaluate& order, timeline_id current);
  /// The part of `shard` for `of` is in memory.
  evaluation_actions on_part(ps_shard_id shard, const protocol::evaluate& of);
  /// The evaluation has ended; without a result it failed or was cancelled.
  evaluation_actions on_result(const std::optional<protocol::evaluated>& result);

  bool is_running() const { return running_; }
  /// Whether this part is wanted, so that the shell may write it to the memory of the parts.
  bool wants(ps_shard_id shard, const protocol::evaluate& of) const;

private:
  std::uint32_t ps_shards_;
  std::optional<protocol::evaluate> order_;
  std::set<ps_shard_id> parts_; ///< of that order, in memory
  bool running_ = false;        ///< maybe still for an order before
  std::optional<protocol::evaluated> result_;
};

} // namespace dlrun::worker
