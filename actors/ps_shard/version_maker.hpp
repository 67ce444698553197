/// The numbers of a PS shard at work: gradients are summed and applied, norms and digests taken.
#pragma once

#include "actors/common/task_thread.hpp"
#include "actors/common/way_back.hpp"
#include "actors/ps_shard/early_gradients.hpp"
#include "actors/ps_shard/gradient.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"
#include "actors/ps_shard/shard_parameters.hpp"
#include "actors/ps_shard/sum_buffers.hpp"
#include "actors/ps_shard/threaded_store.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace dlrun::ps_shard {

/// Makes versions of a shard's parameters, on a thread of its own, strictly in the order in which
/// it is told what to do. Called by its owner only, inside the owner's entry lock; what comes of it
/// is told there too.
class version_maker {
public:
  struct events {
    std::function<void(step_id, norm_partials)> measured;
    std::function<void(step_id, const std::optional<step_metrics>&, protocol::duration took)> applied;
    /// Nothing was published: the root is no number (error_code::diverged), or it changed
    /// meanwhile.
    std::function<void(step_id, timeline_id, const error&)> not_applied;
    /// A worker's buffer changed while it was read: nothing that is here may be published any more.
    std::function<void(const std::string& why)> overtaken;
  };

  version_maker(std::shared_ptr<const common::job_context> job, ps_shard_id shard, common::way_back back,
                events told);

  /// Memory for the parameters, with version 0 in it or, `is_empty`, nothing yet; where there is
  /// any, in `memory`, which outlives the process. To be called once, before all below but run()
  /// and listen(). @returns as shard_parameters::create() does.
  result<void> acquire(bool is_empty, common::retained_memory memory);
  const std::shared_ptr<shard_parameters>& parameters() const { return parameters_; }
  const engine::shard_range& range() const { return range_; }

  /// `value` names this gradient from now on.
  void hold(value_id value, gradient one);
  void carry_out(const combine& action);
  void carry_out(const make_zero& action);
  void carry_out(const release& action);
  /// `parked` are those of `timeline`, sorted.
  void carry_out(const measure& action, const std::vector<protocol::parked_slot>& parked);
  void carry_out(const retain& action);
  void carry_out(const apply& action, timeline_id timeline, const std::vector<protocol::parked_slot>& parked);
  void carry_out(const append& action, const std::shared_ptr<threaded_store>& store);
  /// Takes the image of the version that stands when all before this is done, where the order is
  /// one for it.
  void carry_out(snapshot_order order, bool is_current, const std::shared_ptr<threaded_store>& store);

  /// A part of a gradient of the step that is applied next is there. @returns whether more of the
  /// step can be applied now.
  bool note_early(const protocol::push& push, const gradient& part);
  /// Applies what there is more of `step`, as note_early() said; apply will do the rest.
  void apply_early(step_id step, std::uint64_t revision, timeline_id timeline,
                   const std::vector<protocol::parked_slot>& parked);

  /// SHA-256 of blocks, as shard_parameters::digests(); `done` is called at the owner.
  void digest(std::uint32_t first_block, std::uint32_t count,
              std::function<void(const result<std::string>&)> done);

  /// Runs `task` on the thread, after what was told before.
  void run(std::function<void()> task) { thread_.run(std::move(task)); }
  /// As task_thread::listen().
  result<void> listen(std::shared_ptr<const transport::doorbell> bell, common::task_thread::listener heard) {
    return thread_.listen(std::move(bell), std::move(heard));
  }
  /// Finishes what is in hand and drops the rest. Not inside the entry lock.
  void stop() { thread_.stop(); }

private:
  struct value {
    gradient of;
    bool is_finite = true; ///< of a root: false once it was found not to be
  };
  /// A sum that is not made yet.
  struct summands {
    gradient left, right;
    std::span<float> sum; ///< empty where nobody wants it as a whole
    /// Floats [begin, end) of it, into `sum`, or else into memory that is valid until this thread's
    /// next call.
    std::span<const float> part(std::uint64_t begin, std::uint64_t end) const;
    bool is_intact() const { return left.is_intact() && right.is_intact(); }
  };

  summands begin_sum(const combine& action, const std::shared_ptr<std::vector<float>>& sum);
  void apply_now(const apply& action, timeline_id timeline, const step_shape& shape,
                 const std::shared_ptr<std::vector<float>>& early_sum);
  value& root_of(value_id root);

  std::shared_ptr<const common::job_context> job_;
  ps_shard_id shard_;
  engine::shard_range range_;
  bool is_logged_;
  common::way_back back_;
  events told_;
  std::shared_ptr<base::thread_team> team_;
  sum_buffers sums_;
  early_gradients early_;
  /// Sum of the step that was begun early, from where it was begun with; null if not wanted.
  std::shared_ptr<std::vector<float>> early_sum_;
  std::shared_ptr<shard_parameters> parameters_;
  std::map<value_id, value> values_;     ///< touched by tasks only
  common::task_thread thread_{"values"}; ///< last: joined before what its tasks use goes
};

} // namespace dlrun::ps_shard
