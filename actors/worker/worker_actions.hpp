/// What a worker_core is told at its start, and what it orders.
#pragma once

#include "actors/protocol/durability.hpp"
#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/step_messages.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

namespace dlrun::worker {

struct worker_core_config {
  worker_id self;
  protocol::fence fence;
  std::uint32_t ps_shards = 1;
  std::uint64_t steps = 0; ///< N: the job is trained when every shard stands at version N
  std::function<std::uint32_t(step_id)>
      slots_of;                          ///< slots of a step (the last one of an epoch may have fewer)
  std::uint32_t early_publish_bound = 1; ///< B of rule R7; bounds what is kept (R10)
  protocol::durability durability = protocol::durability::off; ///< decides when a gradient may be forgotten
  /// A push or pull without effect is repeated after this long. Larger: less traffic, slower
  /// recovery from a lost message.
  protocol::duration repeat_after = std::chrono::milliseconds(100);
  protocol::planted_bug bug = protocol::planted_bug::none;
};

// ---- what the shell must do; in the order given

/// Copy version `version` of the shard's parameters into the worker's memory, or see that they can
/// be read where they are, then call on_part(), always, also when the shard is gone. At most one
/// fetch a shard is asked for before its on_part(). Where a fetch gets one of the shard's two
/// buffers, whatever it holds, they take turns.
///
/// Two buffers a shard are enough, version v in number v mod 2: a fetch is not asked for while its
/// buffer is being computed from, and a version that is asked for replaces what the buffer held.
struct fetch_part {
  ps_shard_id shard;
  incarnation shard_incarnation;
  timeline_id timeline;
  version_id version;
  bool operator==(const fetch_part&) const = default;
};
/// How a fetch ended.
enum class fetch_outcome : std::uint8_t {
  taken,     ///< the version is there
  elsewhere, ///< what was fetched is the buffer of another version
  gone       ///< the shard does not serve that version any more, or cannot be reached
};
/// Compute the summed gradient of `slots` of `step` from the parts of exactly version_before(step),
/// then call on_computed() or, where a part was written over meanwhile, on_overwritten(). At most
/// one is asked for before that.
struct compute_gradient {
  timeline_id timeline;
  step_id step;
  protocol::slot_range slots;
  /// What is left out of it: slots whose gradient is zero, added in tree order and not computed,
  /// and records.
  protocol::parked_slots_list parked{};
  std::vector<protocol::suspect_slot> suspects{}; ///< of it: their records are to be tried first (trials_of)
  std::vector<slot_id> not_ahead{}; ///< slots of the next step whose records are not to be read ahead
  bool operator==(const compute_gradient&) const = default;
};
/// Tell the shard where the kept gradient of (`step`, `slots`) lies.
struct push_gradient {
  ps_shard_id shard;
  step_id step;
  protocol::slot_range slots;
  bool operator==(const push_gradient&) const = default;
};
/// Connect to that start of a PS shard, instead of any other, then call on_connected() or
/// on_unconnected(), and on_unconnected() also when the connection is lost. What is ordered for a
/// shard that is not connected is lost, and comes again.
struct connect_shard {
  protocol::directory_entry entry;
  bool operator==(const connect_shard&) const = default;
};
/// Call on_tick() after that time, too.
struct wake {
  protocol::duration after;
  bool operator==(const wake&) const = default;
};
/// Ask the shard where it stands.
struct send_pull {
  ps_shard_id to;
  protocol::pull message;
  bool operator==(const send_pull&) const = default;
};
/// A kept gradient waits for longer than others to be applied: see whether it is finite. Where it
/// is not the job ends.
struct check_gradient {
  compute_gradient made; ///< what it is the result of; nothing is to be tried for it
  bool operator==(const check_gradient&) const = default;
};
/// The kept gradient of (`step`, `slots`) is not needed any more; its buffer may be reused.
struct forget_gradient {
  step_id step;
  protocol::slot_range slots;
  bool operator==(const forget_gradient&) const = default;
};
/// Tell the dispatcher.
struct send_kept {
  protocol::kept message;
  bool operator==(const send_kept&) const = default;
};
/// A newer timeline (R2): everything held (parts, kept gradients, work in hand) is void; its
/// buffers may be reused.
struct discard_all {
  timeline_id adopted;
  bool operator==(const discard_all&) const = default;
};
/// This start is over (R4): a newer one exists. The process ends.
struct exit_fenced {
  incarnation newest;
  bool operator==(const exit_fenced&) const = default;
};

/// R33: nothing is left that others could need of it. The process ends. Given once.
struct exit_left {
  bool operator==(const exit_left&) const = default;
};

using worker_action =
    std::variant<connect_shard, fetch_part, compute_gradient, push_gradient, send_pull, wake, check_gradient,
                 forget_gradient, send_kept, discard_all, exit_fenced, exit_left>;
using worker_actions = std::vector<worker_action>;

} // namespace dlrun::worker
