/// The numbers of a PS shard: parameters in two versions, optimizer state, and the update that
/// makes the next version.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/common/store_replay.hpp"
#include "actors/ps_shard/copy_on_write_image.hpp"
#include "actors/ps_shard/epoch_metrics.hpp"
#include "actors/ps_shard/optimizer_state.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"
#include "actors/ps_shard/retained_version.hpp"
#include "actors/ps_shard/version_notes.hpp"
#include "base/thread_team.hpp"
#include "transport/parameter_segment.hpp"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::ps_shard {

using common::shape_of;
using common::state_source;
using common::step_extra;
using engine::step_shape;

/// Gives floats [begin, end) of a root, which may be made just then, so that they are used while
/// they are in a cache. Called once for each part, by several threads; what it returns is valid
/// until the thread's next call.
using root_source = std::function<std::span<const float>(std::uint64_t begin, std::uint64_t end)>;

/// Not thread-safe: after create() only the value thread calls it, except shared() and range().
class shard_parameters {
public:
  /// Memory for the shard's range of the model and version 0 in it. @returns system when memory
  /// cannot be had, or as reset() does.
  static result<shard_parameters> create(std::shared_ptr<const common::job_context> job, ps_shard_id shard);

  /// The same without version 0: nothing is served until load(), take_over() or reset() is done. In
  /// `memory`, which outlives the process (R36), where there is any.
  static result<shard_parameters> create_empty(std::shared_ptr<const common::job_context> job,
                                               ps_shard_id shard, common::retained_memory memory = {});
  /// Shares the work of apply() among the team's threads, to be called before the first. Null: the
  /// caller's thread alone. No bit depends on it.
  void use(std::shared_ptr<base::thread_team> team) { team_ = std::move(team); }

  /// The squares of the mean gradient, clipped by value, summed over each block of parameters, in
  /// block order: what this shard adds to the square of the norm (R12), as bit patterns of doubles.
  /// `root` as for apply(). Of shape.norm nothing is read.
  norm_partials measure(const step_shape& shape, std::span<const float> root) const;

  /// What goes beside versions in memory that outlives the process: to be restarted after load()
  /// and reset(), and told of each step before its apply().
  version_notes& notes() { return notes_; }

  /// Applies step `step`: `root` gives the sum of its gradients over `shape.records`. Writes into
  /// the buffer of the older version and, if `intact()` (may be empty) holds after that, publishes
  /// it.
  /// @returns protocol when it does not hold: `root` changed meanwhile; diverged when a float of
  /// it, or of the version that it makes, is NaN or infinite. Either way nothing is published, but
  /// the optimizer's state, where it is in place, is spoiled until load() or reset(); else the
  /// metrics, when this shard owns the metric block.
  result<std::optional<step_metrics>> apply(timeline_id timeline, step_id step, const step_shape& shape,
                                            const root_source& root, const std::function<bool()>& intact);

  /// Begins step `step` with what is there of it: floats [from, range().size) of its root, of which
  /// whole blocks are applied. May be called again with a lower `from`; apply() then does the rest.
  /// `root` and `intact` as there, for these floats. No bit depends on it. Until apply() has
  /// published, or load() or reset() is called, only the parameters of the version before can be
  /// used.
  void apply_early(timeline_id timeline, step_id step, const step_shape& shape, std::uint64_t from,
                   const root_source& root, const std::function<bool()>& intact);

  /// The state of the version published last, for a snapshot of it: may be read from another thread
  /// while apply() goes on. `pool_blocks` as for copy_on_write_image. The image must not outlive
  /// this object.
  std::shared_ptr<copy_on_write_image> begin_image(std::size_t pool_blocks);

  /// Serves nothing, until load() or reset() is done.
  void withdraw();
  /// Takes parameters and optimizer state from `source` and publishes them as `version`. On failure
  /// nothing is served.
  result<void> load(timeline_id timeline, version_id version, const state_source& source);
  /// What this shard's memory looks like to retained_version::open().
  retained_shape retained() const;
  /// Takes the newest version of `former`, and the one before where it is whole, and publishes
  /// them.
  void take_over(const retained_version& former);
  /// Takes the parameters alone from `source` into `out` (range().size floats) and changes nothing
  /// else. May be called from any thread: it reads only what never changes.
  result<void> extract(const state_source& source, std::span<float> out) const;
  /// Publishes the initial parameters, version 0. @returns as initial_values() does; then nothing
  /// is served.
  result<void> reset(timeline_id timeline);
  /// The shard's floats of the version published last.
  std::span<const float> current() const { return writer_.current(); }
  /// Floats that an image of this shard has.
  std::size_t image_floats() const { return updates_.image_floats(); }
  /// Sums of metrics in each step of this model.
  std::size_t metric_sums() const { return job_->model->metrics().floats(); }

  /// SHA-256 of (block number, parameters, optimizer state) of each block in [first, first +
  /// count), 32 bytes each. Blocks are numbered over the whole model. @returns bad_usage for blocks
  /// that are not this shard's.
  result<std::string> digests(std::uint32_t first, std::uint32_t count) const;

  const engine::shard_range& range() const { return range_; }
  const transport::segment& shared() const { return writer_.shared(); }

private:
  shard_parameters(std::shared_ptr<const common::job_context> job, ps_shard_id shard,
                   transport::parameter_writer writer, engine::block_updates updates, optimizer_state state,
                   version_notes notes);
  /// A step that is being applied.
  struct begun_step {
    timeline_id timeline;
    step_id step;
    std::span<float> out;
    kernels::cpu::update_state state;
    std::size_t left = 0;                                                ///< blocks [0, left) are still to do
    bool is_finite = true;                                               ///< of the root
    std::size_t first_spoiled = std::numeric_limits<std::size_t>::max(); ///< block that the update made none
    bool is_intact = true;
    std::optional<step_metrics> metrics;
  };
  void begin(timeline_id timeline, step_id step);
  void give_up();
  std::uint64_t begin_of(std::size_t block) const;
  void apply_blocks(std::size_t first, const step_shape& shape, const root_source& root,
                    base::thread_team* team);
  void preserve(std::size_t block);
  step_metrics metrics_in(std::span<const float> block) const;
  error spoiled(std::size_t block) const;

  std::shared_ptr<const common::job_context> job_;
  engine::shard_range range_;
  transport::parameter_writer writer_;
  engine::block_updates updates_;
  optimizer_state state_;
  version_notes notes_;
  struct open_image {
    std::weak_ptr<copy_on_write_image> of;
    const float* parameters; ///< the buffer that it reads
  };
  std::vector<open_image> images_;
  std::optional<begun_step> begun_;
  std::shared_ptr<base::thread_team> team_;
};

} // namespace dlrun::ps_shard
