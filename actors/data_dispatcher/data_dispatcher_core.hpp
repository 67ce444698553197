/// What each event means to the dispatcher's parts: leases, evaluations, timelines, the end.
#pragma once

#include "actors/data_dispatcher/evaluation_order.hpp"
#include "actors/data_dispatcher/lease_book.hpp"
#include "actors/data_dispatcher/shard_watch.hpp"
#include "actors/data_dispatcher/stall_finder.hpp"
#include "actors/data_dispatcher/timeline_keeper.hpp"
#include "actors/data_dispatcher/worker_watch.hpp"

#include <optional>

namespace dlrun::data_dispatcher {

struct data_dispatcher_core_config {
  dlrun::incarnation self;
  std::uint32_t workers = 1;
  std::uint32_t ps_shards = 1;
  std::uint64_t steps = 0;                 ///< N
  std::uint32_t microbatches_per_step = 1; ///< K
  bool evaluates = false;                  ///< the job has a validation set; version N is evaluated
  std::size_t metrics = 0;                 ///< sums that a result of the job's evaluations has
  /// As in lease_rules. Statuses must come several times in `silent_after`.
  protocol::duration silent_after = std::chrono::milliseconds(1000);
  protocol::duration repeat_after = std::chrono::milliseconds(200);
  protocol::duration retry_idle_after = std::chrono::seconds(2);

  // where state is durable; the rest has no meaning with `off`
  protocol::durability durability = protocol::durability::off;
  slot_sizes sizes{};
  bool couples = false; ///< shards exchange norms (R12)
  /// Of versions before N, which are evaluated too (R17); `steps` and N are filled in from above.
  evaluation_rules evaluations{};
  protocol::duration max_recovery = std::chrono::milliseconds(500);
  journaled_course course{}; ///< what the journal holds
  protocol::planted_bug bug = protocol::planted_bug::none;
};

/// Pure: decides who computes which slots, what is evaluated, and on which version everybody
/// stands. The journal has the course (history, parked slots, evaluations); everything else follows
/// from what workers and shards report. So a dispatcher can be restarted at any time.
class data_dispatcher_core {
public:
  explicit data_dispatcher_core(data_dispatcher_core_config config);

  /// What `dlrun resume` was asked to change; to be called before anything else. Everybody goes
  /// back for it, and no lease is sent until every PS shard has it: no step is made by the old
  /// specification.
  data_dispatcher_actions on_wanted_change(const wanted_change& wanted, protocol::time_point now);

  /// That many workers are wanted: no gradient is called lost before they had the time to join.
  void on_workers_wanted(std::uint32_t workers) { config_.workers = workers; }
  /// A start of a worker can take work from now on.
  data_dispatcher_actions on_worker_joined(worker_id worker, dlrun::incarnation incarnation,
                                           protocol::time_point now);
  /// That start is over: its slots go to the others at once.
  data_dispatcher_actions on_worker_lost(worker_id worker, dlrun::incarnation incarnation,
                                         protocol::time_point now);
  data_dispatcher_actions on_worker_status(const protocol::worker_status& status, protocol::time_point now);
  data_dispatcher_actions on_shard_status(const protocol::shard_status& status, protocol::time_point now);
  data_dispatcher_actions on_evaluated(const protocol::evaluated& result, protocol::time_point now);
  /// Ignored if training has left its timeline. It is passed on to the coordinator, which says with
  /// it what is kept, once every PS shard has reported that on this timeline; the sender repeats
  /// it.
  data_dispatcher_actions on_divergence(const protocol::divergence& what) const;
  /// A start of a PS shard has joined / is over.
  void on_shard_started(ps_shard_id shard, dlrun::incarnation incarnation);
  void on_shard_lost(ps_shard_id shard, dlrun::incarnation incarnation);
  data_dispatcher_actions on_kept(const protocol::kept& answer, protocol::time_point now);
  /// The course that was written under this id is in the journal, synced.
  data_dispatcher_actions on_journaled(std::uint64_t id, protocol::time_point now);
  data_dispatcher_actions on_poisoned_slot(const protocol::parked_slot& slot, protocol::time_point now);
  /// The coordinator wants to end the job on this timeline. Answered by training_closed if training
  /// has finished on it; not at all otherwise.
  data_dispatcher_actions on_close(timeline_id timeline);
  /// Periodic, every `repeat_after` or sooner and at least four times in `silent_after`. A much
  /// longer gap between ticks means that this process was paused: then nobody counts as silent
  /// before they had the time to be heard again.
  data_dispatcher_actions on_tick(protocol::time_point now);

  /// Figures for the report, sent to the coordinator periodically, and before the message that ends
  /// the training.
  protocol::training_progress progress() const;

private:
  bool awaits_change() const;
  void ask_for_change(protocol::time_point now, data_dispatcher_actions& out);
  void withhold_leases();
  void notice_pause(protocol::time_point now);
  void tell_keeper_of_workers(protocol::time_point now);
  void finish_when_trained(protocol::time_point now, data_dispatcher_actions& out);
  void order_evaluation(protocol::time_point now, data_dispatcher_actions& out);
  void look_for_stall(protocol::time_point now, data_dispatcher_actions& out);
  std::optional<protocol::evaluate> evaluation_due() const;

  data_dispatcher_core_config config_;
  lease_book leases_;
  shard_watch shards_;
  worker_watch workers_;
  evaluation_order evaluator_;
  stall_finder stalls_;
  std::optional<timeline_keeper> keeper_; ///< where state is durable
  std::optional<wanted_change> change_;   ///< that was asked for
  std::optional<timeline_id> finished_;   ///< that training has finished on
  bool evaluated_ = false;                ///< version N, where nothing is durable
  std::optional<protocol::time_point> first_tick_, last_tick_;
  /// lease_book's heard_changes(), and whether all are known.
  std::optional<std::pair<std::uint64_t, bool>> told_of_workers_;
};

} // namespace dlrun::data_dispatcher
