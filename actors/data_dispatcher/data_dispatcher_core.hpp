/// Decides leases, sees progress and stragglers, and orders the evaluation (rules R5, R17, the
/// dispatcher's half of "C").
#pragma once

#include "actors/data_dispatcher/assignment.hpp"
#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "actors/data_dispatcher/timeline_keeper.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dlrun::data_dispatcher {

struct data_dispatcher_core_config {
  dlrun::incarnation self;
  std::uint32_t workers = 1;
  std::uint32_t ps_shards = 1;
  std::uint64_t steps = 0;                 ///< N
  std::uint32_t microbatches_per_step = 1; ///< K
  bool evaluates = false;                  ///< the job has a validation set; version N is evaluated
  /// A worker silent for longer gets no slots (it keeps its lease; what it still sends is welcome).
  /// Must be several times the period of worker_status.
  protocol::duration silent_after = std::chrono::milliseconds(1000);
  /// Leases are repeated at this period until acknowledged.
  protocol::duration repeat_after = std::chrono::milliseconds(200);
  /// A step open for this many times the recent step time (and at least straggler_min) makes every
  /// live worker compute every slot of it: an idle worker helps a straggler.
  double straggler_factor = 4;
  protocol::duration straggler_min = std::chrono::milliseconds(500);
  /// A worker whose measured speed was worth no slots is measured anew after this long. Larger: a
  /// worker that was slow for a moment idles longer; smaller: a slow one costs a slow step more
  /// often.
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

/// Pure. In synchronous mode all it knows but the course (history, parked slots, evaluations:
/// journaled) follows from what workers and shards report, so it can be restarted at any time.
class data_dispatcher_core {
public:
  explicit data_dispatcher_core(data_dispatcher_core_config config);

  /// A start of a worker can take work from now on.
  data_dispatcher_actions on_worker_joined(worker_id worker, dlrun::incarnation incarnation,
                                           protocol::time_point now);
  /// That start is over: its slots go to the others at once.
  data_dispatcher_actions on_worker_lost(worker_id worker, dlrun::incarnation incarnation,
                                         protocol::time_point now);
  data_dispatcher_actions on_worker_status(const protocol::worker_status& status, protocol::time_point now);
  data_dispatcher_actions on_shard_status(const protocol::shard_status& status, protocol::time_point now);
  data_dispatcher_actions on_evaluated(const protocol::evaluated& result, protocol::time_point now);
  /// A start of a PS shard has joined / is over.
  data_dispatcher_actions on_shard_started(ps_shard_id shard, dlrun::incarnation incarnation,
                                           protocol::time_point now);
  data_dispatcher_actions on_shard_lost(ps_shard_id shard, dlrun::incarnation incarnation,
                                        protocol::time_point now);
  data_dispatcher_actions on_kept(const protocol::kept& answer, protocol::time_point now);
  /// The course given with this id is in the journal, synced.
  data_dispatcher_actions on_journaled(std::uint64_t id, protocol::time_point now);
  data_dispatcher_actions on_poisoned_slot(const protocol::parked_slot& slot, protocol::time_point now);
  /// The coordinator wants to end the job on this timeline. Answered by training_closed if that is
  /// where it is finished; not at all otherwise.
  data_dispatcher_actions on_close(timeline_id timeline, protocol::time_point now);
  data_dispatcher_actions on_go_back(const protocol::go_back& wanted, protocol::time_point now);
  /// Periodic, every `repeat_after` or sooner and at least four times in `silent_after`. A gap
  /// between ticks much longer than the period means that this process was paused: then nobody is
  /// held silent before they had the time to be heard again.
  data_dispatcher_actions on_tick(protocol::time_point now);

  /// Newest status of each shard heard; of a lost one until its next start is heard.
  const std::map<ps_shard_id, protocol::shard_status>& shards() const { return shards_; }
  /// Lowest version over the shards; empty before all were heard.
  std::optional<version_id> applied_everywhere() const;

private:
  struct live_worker {
    dlrun::incarnation incarnation;
    protocol::time_point heard{};
    double slots_per_second = 0;
    std::uint64_t slots_computed = 0, compute_us = 0;
    std::uint64_t acknowledged = 0;
    std::optional<protocol::lease> lease;
    protocol::time_point lease_sent{};
    protocol::time_point leased_at{}; ///< since when it has these slots
    bool silent = false;
  };
  struct loss {
    worker_id worker;
    dlrun::incarnation incarnation;
    protocol::slot_range slots;
    protocol::time_point noticed{};
  };

  void forget_idle_speeds(protocol::time_point now);
  void divide(protocol::time_point now, data_dispatcher_actions& out);
  void lease_to(worker_id id, live_worker& worker, protocol::slot_range slots, const std::string& reason,
                protocol::time_point now, data_dispatcher_actions& out);
  void measure_speed(live_worker& worker, const protocol::worker_status& status);
  void settle_losses(protocol::time_point now, data_dispatcher_actions& out);
  bool is_with_others(protocol::slot_range slots) const;
  void notice_pause(protocol::time_point now);
  void notice_silence(protocol::time_point now, data_dispatcher_actions& out);
  void notice_progress(protocol::time_point now, data_dispatcher_actions& out);
  void help_straggler(protocol::time_point now, data_dispatcher_actions& out);
  void finish_when_trained(protocol::time_point now, data_dispatcher_actions& out);
  void order_evaluation_again(protocol::time_point now, data_dispatcher_actions& out);
  void report_resumed(const protocol::shard_status& status, data_dispatcher_actions& out);
  bool is_trained() const;
  std::optional<protocol::evaluate> evaluation_due() const;
  void tell_keeper_of_workers(protocol::time_point now);

  data_dispatcher_core_config config_;
  assignment assignment_;
  std::map<worker_id, live_worker> workers_;
  std::map<ps_shard_id, protocol::shard_status> shards_;
  struct shard_start {
    dlrun::incarnation incarnation;
    std::optional<version_id> first_heard; ///< the version that it restored
    bool resumed = false;
  };
  std::map<ps_shard_id, shard_start> shard_starts_; ///< newest
  std::map<worker_id, dlrun::incarnation> contributed_;
  std::vector<loss> losses_; ///< whose slots are not with others yet
  std::uint64_t next_sequence_ = 1;
  // progress, stragglers
  std::optional<version_id> progress_;
  protocol::time_point progress_at_{};
  double step_seconds_ = 0;
  bool helping_ = false;
  // the end
  std::optional<timeline_id> finished_;
  std::optional<protocol::evaluated> evaluation_; ///< of version N, where nothing is durable
  std::optional<protocol::evaluate> evaluation_ordered_;
  protocol::time_point evaluation_sent_{};
  std::optional<worker_id> evaluator_;
  std::optional<protocol::time_point> last_tick_;
  std::optional<protocol::time_point> first_tick_;
  std::optional<timeline_keeper> keeper_; ///< where state is durable
};

} // namespace dlrun::data_dispatcher
