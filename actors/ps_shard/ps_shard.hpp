/// The PS shard actor: routes messages into ps_shard_core and carries its decisions out.
#pragma once

#include "actors/common/ask.hpp"
#include "actors/common/io_thread_actor.hpp"
#include "actors/common/job_context.hpp"
#include "actors/common/sender.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/protocol/step_packets.hpp"
#include "actors/ps_shard/early_gradients.hpp"
#include "actors/ps_shard/epoch_metrics.hpp"
#include "actors/ps_shard/ps_shard_core.hpp"
#include "actors/ps_shard/shard_parameters.hpp"
#include "actors/ps_shard/shard_storage.hpp"
#include "actors/ps_shard/step_times.hpp"
#include "actors/ps_shard/sum_buffers.hpp"
#include "transport/gradient_segment.hpp"
#include "transport/tensor_channel.hpp"

#include <map>
#include <memory>
#include <set>

namespace dlrun::ps_shard {

class ps_shard_state {
public:
  struct holder {
    std::unique_ptr<ps_shard_state> role;
    static inline const char* name = "ps_shard";
  };
  using pointer = common::io_thread_actor<holder, protocol::ps_shard_actor>*;
  using behavior = protocol::ps_shard_actor::behavior_type;

  /// For `system.spawn(ps_shard_state::start, context)`. The actor quits with an error if it cannot get
  /// memory or threads, cannot use its store, is refused by the coordinator, or is fenced.
  static behavior start(pointer self, common::role_context context);
  ~ps_shard_state();

private:
  /// A gradient, or the sum of several: floats of the shard's range and what keeps them in memory.
  struct value {
    std::span<const float> floats;
    std::shared_ptr<const void> memory;
    /// Of a worker's buffer, which is read in place: whether it is still what was pushed. Asked after
    /// reading.
    std::function<bool()> intact;
    bool is_finite = true; ///< of a root: false once apply() found that it is not
  };
  /// A sum that is not made yet.
  struct summands {
    value left, right;
    std::span<float> sum; ///< empty where nobody wants it as a whole
    /// Floats [begin, end) of it, into `sum`, or else into memory that is valid until this thread's next
    /// call.
    std::span<const float> part(std::uint64_t begin, std::uint64_t end) const;
    bool intact() const;
  };
  using value_table = std::map<value_id, value>; ///< touched by the tasks of the value thread only
  using segment_key = std::pair<std::string, std::uint64_t>;
  struct gradient_source {
    worker_id worker;
    dlrun::incarnation incarnation;
    std::shared_ptr<const transport::gradient_reader> reader; ///< mapped; null while it is fetched
    std::vector<protocol::push> waiting;
  };
  /// Another PS shard, as far as it is needed: for norms (R12).
  struct shard_link {
    dlrun::incarnation incarnation;  ///< that was connected to; of one that connects to us: 0
    protocol::ps_shard_actor handle; ///< null while there is none
    bool connecting = false;
  };
  struct attached_worker {
    dlrun::incarnation incarnation;
    protocol::worker_actor handle;
    std::shared_ptr<const transport::doorbell> bell; ///< null while there is none
    std::optional<timeline_id> told; ///< by message; of this one the rest may be said through the doorbell
  };
  /// Of a doorbell, once it has said so.
  using bell_owner = std::optional<protocol::hello_packet>;

  /// Of a snapshot, for whoever evaluates it: one at a time, until nobody has asked for a while.
  struct offered_snapshot {
    timeline_id timeline;
    version_id version;
    protocol::time_point asked{};
    std::optional<transport::segment_id> segment; ///< none while it is read
  };

  using opened_storage =
      std::shared_ptr<result<std::shared_ptr<shard_storage>>>; ///< of the value thread's task

  ps_shard_state(pointer self, common::role_context context);
  result<void> acquire();
  opened_storage open_storage();
  void restore_from(const opened_storage& opened);
  void on_restored(const std::shared_ptr<result<restored_state>>& restored);
  result<void> enter(restored_state restored);
  shard_storage_events make_storage_events();
  behavior make_behavior();

  void on_push(const protocol::push& push);
  void on_pull(const protocol::pull& pull, const protocol::worker_actor& from);
  void on_directory(const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher);
  void on_norm(const protocol::norm& message);
  void on_norm_request(const protocol::norm_request& message);
  void note_sender(ps_shard_id shard);
  void on_link_down(const caf::actor_addr& gone);
  void introduce_to(const protocol::ps_shard_actor& shard);
  void connect_shards();
  void connect_shards_soon();
  void connect_shard(const protocol::directory_entry& entry);
  caf::result<protocol::digest_reply> on_digest_request(const protocol::digest_request& request);
  void on_snapshot_request(const protocol::snapshot_request& request, const protocol::worker_actor& from);
  void on_frozen(const protocol::snapshot_request& request, const protocol::worker_actor& from,
                 const result<transport::frozen_parameters_writer>& frozen);
  void withdraw_unused_snapshot();
  void on_tick();

  void on_published(const protocol::endpoint& at);
  void on_joined(const protocol::join_reply& reply, const protocol::data_dispatcher_actor& dispatcher);

  void on_doorbell(const std::shared_ptr<const transport::doorbell>& bell);
  bool on_packet(bell_owner& from, const std::shared_ptr<const transport::doorbell>& bell,
                 std::optional<std::span<const std::byte>> packet);
  void on_part(const protocol::push& push, std::uint64_t from);
  void note_early(const protocol::push& push, early_gradients::gradient gradient);
  void apply_early(step_id step, std::uint64_t revision);
  transport::gradient_header header_of(const protocol::push& push) const;
  bool attach(const protocol::hello_packet& owner, const std::shared_ptr<const transport::doorbell>& bell);
  void detach(const bell_owner& owner, const std::shared_ptr<const transport::doorbell>& bell);
  void tell(attached_worker& worker);
  bool speaks_for_itself(worker_id worker, const protocol::fence& claimed) const;
  void fetch_gradient(const segment_key& key, const protocol::push& push);
  void on_fetched(const segment_key& key, result<transport::segment> fetched);
  void accept(const protocol::push& push, const std::shared_ptr<const transport::gradient_reader>& reader);
  void forget_sources(worker_id worker, dlrun::incarnation older_than);

  void carry_out(const ps_shard_actions& actions);
  void carry_out(const combine& action);
  summands begin_sum(value_table& values, const combine& action,
                     const std::shared_ptr<std::vector<float>>& sum);
  void apply_root(const apply& action, const std::optional<combine>& sum);
  void carry_out(const make_zero& action);
  void carry_out(const release& action);
  void carry_out(const measure& action);
  void carry_out(const apply& action);
  void carry_out(const append& action);
  void carry_out(const take_snapshot& action);
  void carry_out(const drop_below& action);
  void carry_out(const perform_rewind& action);
  void carry_out(const send_norm& action);
  void carry_out(const send_norm_request& action);
  void carry_out(const send_status& action);
  void carry_out(const publish& action);
  void carry_out(const send_state& action);
  void carry_out(const send_fenced& action);
  void carry_out(const exit_fenced& action);
  void lose_trust(const std::string& why);
  void on_not_applied(step_id step, timeline_id timeline, const error& why);
  void report_divergence();
  void on_applied(step_id step, const std::optional<step_metrics>& metrics, protocol::duration took);
  void on_truncated(const perform_rewind& action, const result<void>& truncated);
  void on_rewound(const result<restored_state>& loaded);
  void on_opening_stalled(const error& why);
  void on_log_stalled(const std::optional<error>& why);
  void on_snapshot_stalled(const std::optional<error>& why);
  void tell_stall(const char* what, const std::optional<error>& why);
  void give_up_on_quota();
  bool is_stalled() const { return log_stalled_ || snapshot_stalled_; }

  protocol::shard_state current_state() const;
  protocol::shard_status current_status(std::uint64_t probe);
  std::uint64_t replay_us(const protocol::shard_status& status) const;
  void report_status();
  void report_alive();
  void quit(const std::string& why);

  pointer self_;
  common::role_context context_;
  std::optional<ps_shard_core> core_; ///< from when it is known where the store stands
  engine::shard_range range_;
  std::shared_ptr<transport::segment_offers> server_;
  std::unique_ptr<transport::segment_fetches> client_;
  std::shared_ptr<shard_parameters> parameters_;
  std::shared_ptr<base::thread_team> team_; ///< of the value thread
  sum_buffers sums_;
  early_gradients early_; ///< of the step that is applied next
  std::shared_ptr<std::vector<float>>
      early_sum_; ///< of that step, from where it was begun with; null if not wanted
  protocol::tensor_location parameters_at_;
  std::shared_ptr<value_table> values_ = std::make_shared<value_table>();

  protocol::endpoint endpoint_;
  protocol::directory directory_;
  std::map<worker_id, attached_worker> workers_;
  std::map<ps_shard_id, shard_link> shards_; ///< the others; empty where nothing couples
  std::map<segment_key, gradient_source> sources_;
  std::uint64_t next_value_ = 1;
  std::optional<offered_snapshot> offered_;
  epoch_metrics metrics_;
  step_times step_times_;
  bool has_applied_ = false;                     ///< a step, since this start
  double apply_us_ = 0;                          ///< running mean of the time that a step takes to apply
  std::optional<protocol::divergence> diverged_; ///< of this timeline
  protocol::time_point diverged_at_{};
  std::optional<error> log_stalled_; ///< why the disk takes nothing
  std::optional<error> snapshot_stalled_;
  protocol::time_point stalled_since_;
  std::uint64_t status_sequence_ = 0;
  std::vector<protocol::first_contribution>
      applied_contributions_; ///< of the step applied last; a change is told at once
  common::latest_sender<protocol::shard_status> status_sender_;
  common::latest_sender<protocol::heartbeat> heartbeat_sender_;
  protocol::data_dispatcher_actor dispatcher_;

  std::atomic<bool> is_gone_ = false;
  std::shared_ptr<shard_storage> storage_;      ///< null where nothing is kept on disk
  common::task_thread values_thread_{"values"}; ///< last: joined before what its tasks use goes
};

} // namespace dlrun::ps_shard
