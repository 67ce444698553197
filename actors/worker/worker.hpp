/// The worker actor: routes messages into worker_core and carries its decisions out.
#pragma once

#include "actors/common/ask.hpp"
#include "actors/common/io_thread_actor.hpp"
#include "actors/common/job_context.hpp"
#include "actors/common/sender.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/protocol/step_packets.hpp"
#include "actors/worker/evaluation_core.hpp"
#include "actors/worker/evaluator.hpp"
#include "actors/worker/trainer.hpp"
#include "actors/worker/worker_core.hpp"
#include "transport/tensor_channel.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace dlrun::worker {

class worker_state {
public:
  struct holder {
    std::unique_ptr<worker_state> role;
    static inline const char* name = "worker";
  };
  using pointer = common::io_thread_actor<holder, protocol::worker_actor>*;
  using behavior = protocol::worker_actor::behavior_type;

  /// For `system.spawn(worker_state::start, context)`. The actor quits with an error if it cannot
  /// open its data or get memory, is refused by the coordinator, or is fenced.
  static behavior start(pointer self, common::role_context context);
  ~worker_state();

private:
  /// A PS shard as the directory and its own states describe it.
  struct shard_link {
    dlrun::incarnation incarnation;  ///< of the start that `handle` belongs to
    protocol::ps_shard_actor handle; ///< null while connecting
    bool connecting = false;
    dlrun::incarnation mapped; ///< start whose parameters are mapped
    protocol::tensor_location parameters;
    parameter_source source; ///< mapped; null while mapping, and where nothing is shared
    bool mapping = false;    ///< or fetching a copy
    int buffer = 0;          ///< that a copy is taken of next: versions take turns
    bool missed = false;     ///< the copy before was not of the version that waits: it is in the other buffer
    std::optional<fetch_part> waiting; ///< a fetch that waits for that
    std::optional<get_snapshot_part> waiting_evaluation;
    std::optional<protocol::shard_state> told; ///< by message, of the newest timeline: packets say the rest
    std::shared_ptr<const transport::doorbell> bell; ///< to the start whose parameters are mapped, or null
    bool connecting_bell = false;
    protocol::time_point bell_again{}; ///< when to try to connect it
  };

  using gradient_key = kept_gradients::key;

  worker_state(pointer self, common::role_context context);
  result<void> acquire();
  behavior make_behavior();

  void on_shard_state(const protocol::shard_state& state);
  void on_lease(const protocol::lease& lease);
  void on_directory(const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher);
  void on_fenced(const protocol::fenced& message);
  void on_evaluate(const protocol::evaluate& order);
  void on_tick();

  void on_published(const protocol::endpoint& at);
  void on_joined(const protocol::join_reply& reply, const protocol::data_dispatcher_actor& dispatcher);
  void connect_shard(ps_shard_id shard, const protocol::directory_entry& entry);
  void map_parameters(ps_shard_id shard);
  void on_mapped(ps_shard_id shard, dlrun::incarnation incarnation, result<transport::segment> fetched);
  void connect_bell(ps_shard_id shard);
  void on_bell(ps_shard_id shard, dlrun::incarnation incarnation,
               result<std::unique_ptr<transport::doorbell>> made);
  bool on_packet(ps_shard_id shard, dlrun::incarnation incarnation,
                 std::optional<std::span<const std::byte>> packet);
  void on_computed(const compute_gradient& what, computed_gradient made, protocol::duration took);
  void on_not_computed(const compute_gradient& what, const error& why, std::optional<slot_id> diverged);

  /// What the core orders while this runs, since an action ended at once, comes after what it has
  /// ordered before.
  void carry_out(worker_actions actions);
  void carry_out(const fetch_part& action);
  void take_part_of(const fetch_part& action, const parameter_source& source);
  void on_part(const fetch_part& what, bool ok);
  void carry_out(const compute_gradient& action);
  void carry_out(const check_gradient& action);
  void report_divergence(const gradient_key& what, std::optional<slot_id> slot, const std::string& text);
  protocol::push push_of(const transport::pooled_gradient& buffer,
                         const transport::gradient_header& header) const;
  void tell_part(const transport::pooled_gradient& buffer, const transport::gradient_header& header,
                 std::uint64_t from);
  void carry_out(const push_gradient& action);
  void carry_out(const pull_state& action);
  void carry_out(const forget_gradient& action);
  void carry_out(const send_kept& action);
  void carry_out(const discard_all& action);
  void carry_out(const exit_fenced& action);

  // evaluation (worker_evaluation.cpp)
  void on_snapshot_offer(const protocol::snapshot_offer& offer);
  void on_snapshot_mapped(const get_snapshot_part& part,
                          const std::shared_ptr<result<transport::segment>>& mapped);
  void take_part(const get_snapshot_part& part, std::function<result<void>(std::span<float>)> copy);
  void on_evaluated(const run_evaluation& what, const result<protocol::evaluated>& made);
  void carry_out(const evaluation_actions& actions);
  void carry_out(const get_snapshot_part& action);
  void take_last_version(const get_snapshot_part& action, const parameter_source& source);
  void carry_out(const run_evaluation& action);
  void carry_out(const cancel_evaluation& action);
  void carry_out(const send_evaluated& action);

  void report_status();
  void report_alive();
  void quit(const std::string& why);

  pointer self_;
  common::role_context context_;
  std::optional<protocol::divergence> diverged_;
  std::optional<protocol::stop_job> unusable_data_;
  protocol::endpoint endpoint_;
  worker_core core_;
  std::deque<worker_action> ordered_; ///< by the core, not carried out yet
  bool carries_out_ = false;
  std::shared_ptr<transport::segment_offers> server_; ///< outlives every gradient that was lent from it
  std::unique_ptr<transport::segment_fetches> client_;
  std::shared_ptr<trainer> trainer_; ///< used on the compute thread only

  std::pair<dlrun::incarnation, std::uint64_t>
      directory_age_; ///< coordinator and sequence of the newest heard
  std::map<ps_shard_id, shard_link> shards_;
  std::map<gradient_key, computed_gradient> kept_;
  std::uint64_t slots_computed_ = 0;
  protocol::duration compute_time_{};
  evaluation_core evaluation_;
  std::shared_ptr<evaluator> evaluator_; ///< used on the evaluation thread only; null without validation data
  std::set<ps_shard_id> mapping_snapshots_;
  std::shared_ptr<std::atomic<bool>> cancelled_; ///< of the evaluation that runs
  common::latest_sender<protocol::worker_status> status_sender_;
  common::latest_sender<protocol::heartbeat> heartbeat_sender_;
  protocol::data_dispatcher_actor dispatcher_;

  common::task_thread evaluation_thread_{
      "evaluation"}; ///< these last: joined before what their tasks use goes
  common::task_thread compute_thread_{"compute"};
};

} // namespace dlrun::worker
