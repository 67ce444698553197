/// Decides what a worker computes, fetches, pushes and keeps (rules R2, R3, R5, R6, R9, R10).
#pragma once

#include "actors/protocol/durability.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
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
// ------------------------------------------------------------------------

/// Copy version `version` of the shard's parameters into the worker's memory, or see that they can
/// be read where they are, then call on_part(), always, also when the shard is gone. At most one
/// fetch a shard is asked for before its on_part().
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
/// Ask the shard where it stands.
struct pull_state {
  ps_shard_id shard;
  bool operator==(const pull_state&) const = default;
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

using worker_action = std::variant<fetch_part, compute_gradient, push_gradient, pull_state, forget_gradient,
                                   send_kept, discard_all, exit_fenced>;
using worker_actions = std::vector<worker_action>;

/// Pure: same calls, same answers; no clock, no socket, no thread. Values (parameters, gradients)
/// stay in the shell, named by (shard, version) and (step, slots).
class worker_core {
public:
  explicit worker_core(worker_core_config config);

  /// A shard said where it stands. Older timelines and incarnations are ignored, a newer
  /// incarnation replaces what was known, downwards too (R3); a newer timeline voids everything
  /// (R2).
  worker_actions on_shard_state(const protocol::shard_state& state, protocol::time_point now);

  /// A fetch ended. `ok` = false: the shard does not serve that version any more.
  worker_actions on_part(ps_shard_id shard, incarnation shard_incarnation, timeline_id timeline,
                         version_id version, bool ok, protocol::time_point now);

  /// A computation ended; its gradient is kept by the shell if kept(step, slots) says so
  /// afterwards.
  worker_actions on_computed(timeline_id timeline, step_id step, protocol::slot_range slots,
                             protocol::time_point now);

  /// A computation came to nothing: a part that it read in place was written over.
  worker_actions on_overwritten(timeline_id timeline, step_id step, protocol::slot_range slots);

  worker_actions on_lease(const protocol::lease& lease, protocol::time_point now);
  worker_actions on_directory(const protocol::directory& directory, protocol::time_point now);
  worker_actions on_fenced(const protocol::fenced& message, protocol::time_point now);
  /// The dispatcher looks for gradients (R14). Answered at once.
  worker_actions on_probe(const protocol::probe& question, protocol::time_point now);
  /// To be called every `repeat_after` or sooner.
  worker_actions on_tick(protocol::time_point now);

  timeline_id timeline() const { return timeline_; }
  /// The step it works on: the lowest version any shard stands at (R6); empty before every shard
  /// was heard.
  std::optional<step_id> open_step() const;
  /// What is left out of `slots`.
  protocol::parked_slots_list parked_in(step_id step, protocol::slot_range slots) const;
  bool keeps(step_id step, protocol::slot_range slots) const { return kept_.contains({step, slots}); }
  std::size_t kept_count() const { return kept_.size(); }
  std::uint64_t lease_sequence() const { return lease_ ? lease_->sequence : 0; }
  /// The dispatcher that gave it.
  incarnation lease_of() const { return lease_ ? lease_->dispatcher : incarnation{}; }
  /// True when every shard stands at version N.
  bool trained() const;
  /// True when the parts of `version` of every shard are in memory. Version N is fetched too, for
  /// the evaluation.
  bool has_parts(version_id version) const;
  /// What it waits for, for people: "lease", "parameters of ps_shard 1", "other workers", ...
  std::string waiting_for() const;

private:
  struct known_shard {
    incarnation shard_incarnation;
    version_id applied;
    version_id committed;
    bool serves_previous = false;
    version_id highest_ever;    ///< only for planted_bug::max_version
    std::set<version_id> parts; ///< versions of it held in memory: of the open step's and the next one
    std::set<version_id>
        refused; ///< fetches that failed; not asked again before the shard moves or the timer
    protocol::time_point refused_at{};
    protocol::time_point heard{};  ///< last state heard, for repeats
    protocol::time_point pushed{}; ///< last push to it
  };
  using kept_key = std::pair<step_id, protocol::slot_range>;

  bool adopt(const protocol::shard_state& state, worker_actions& out);
  void act(worker_actions& out);
  void forget(worker_actions& out);
  void drop_parts();
  void fetch(worker_actions& out);
  void compute(worker_actions& out);
  void push_from(ps_shard_id shard, step_id first, protocol::time_point now, worker_actions& out);
  void repeat(ps_shard_id shard, protocol::time_point now, worker_actions& out);
  void pull(ps_shard_id shard, protocol::time_point now, worker_actions& out);
  void forget_key(std::set<kept_key>::iterator key, worker_actions& out);
  worker_actions exit_if_older(incarnation newest);

  bool everything_known() const { return known_.size() == config_.ps_shards; }
  bool is_safe_everywhere(step_id step) const;
  bool part_is_needed(version_id version) const;
  bool is_read_by_computation(version_id version) const;
  bool keeps_something_in(step_id step, protocol::slot_range slots) const;
  std::vector<protocol::suspect_slot> suspects_in(step_id step, protocol::slot_range slots) const;
  compute_gradient order_of(step_id step, protocol::slot_range slots) const;
  std::optional<protocol::slot_range> next_missing(step_id step) const;
  std::optional<protocol::slot_range> first_missing(step_id step, protocol::slot_range node) const;

  worker_core_config config_;
  timeline_id timeline_{};
  protocol::parked_slots_list parked_;                  ///< of that timeline
  std::pair<incarnation, std::uint64_t> suspects_from_; ///< coordinator and sequence of the directory
  std::vector<protocol::suspect_slot> suspects_;
  bool fenced_ = false;
  std::map<ps_shard_id, known_shard> known_;
  std::set<kept_key> kept_; ///< disjoint within a step
  std::optional<protocol::lease> lease_;
  std::optional<compute_gradient> computing_;  ///< until it has ended, whatever happens meanwhile
  std::map<ps_shard_id, fetch_part> fetching_; ///< until on_part(), whatever happens meanwhile
  std::map<ps_shard_id, protocol::time_point> pulled_;
  std::set<std::pair<ps_shard_id, kept_key>> acknowledged_; ///< only for planted_bug::ack_forever
};

} // namespace dlrun::worker
