/// Evaluates versions of the model at work, beside the training (R17).
#pragma once

#include "actors/common/task_thread.hpp"
#include "actors/common/way_back.hpp"
#include "actors/worker/evaluation_core.hpp"
#include "actors/worker/evaluator.hpp"
#include "actors/worker/parameter_sources.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace dlrun::worker {

/// Carries out what evaluation_core decides, on a thread of its own. Called inside the entry lock
/// of its owner.
class evaluations {
public:
  struct links {
    common::way_back back;
    std::function<void(ps_shard_id, const protocol::snapshot_request&)> request;
    /// As parameter_sources::get(): where nothing is kept on disk only the last version is
    /// evaluated, which its shards serve to the end.
    std::function<void(ps_shard_id, parameter_sources::taker)> get_parameters;
    std::function<void(const protocol::evaluated&)> evaluated;
    /// Whoever evaluates meets the same records: the job ends.
    std::function<void(const protocol::stop_job&)> unusable;
    std::function<void(const std::string& why)> failed;
  };

  /// `context` and `client` outlive this.
  evaluations(const common::role_context& context, transport::segment_fetches& client, links asked);

  /// Opens the validation set of a job that has one. @returns as evaluator::create().
  result<void> open();
  /// The worker is on timeline `current`.
  void on_order(const protocol::evaluate& order, timeline_id current);
  void on_offer(const protocol::snapshot_offer& offer);
  bool is_running() const { return core_.is_running(); }
  /// Ends what is running, and the thread. To be called outside the entry lock.
  void stop();

private:
  void on_mapped(const get_snapshot_part& part,
                 const std::shared_ptr<const result<transport::segment>>& mapped);
  void take_part(const get_snapshot_part& part, std::function<result<void>(std::span<float>)> copy);
  void on_evaluated(const run_evaluation& what, const result<protocol::evaluated>& made);
  void carry_out(const evaluation_actions& actions);
  void carry_out(const get_snapshot_part& action);
  void carry_out(const run_evaluation& action);
  void carry_out(const cancel_evaluation& action);
  void carry_out(const send_evaluated& action) { asked_.evaluated(action.result); }

  const common::role_context& context_;
  transport::segment_fetches& client_;
  links asked_;
  evaluation_core core_;
  std::shared_ptr<evaluator> evaluator_;         ///< used on the thread only; null without validation data
  std::set<ps_shard_id> mapping_;                ///< snapshots of these
  std::shared_ptr<std::atomic<bool>> cancelled_; ///< of the evaluation that runs
  common::task_thread thread_{"evaluation"};     ///< last: joined before what its tasks use goes
};

} // namespace dlrun::worker
