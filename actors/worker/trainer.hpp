/// The numbers of a worker: parameters in two versions, gradients, and the computer that makes one
/// from the other.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/protocol/reduction_tree.hpp"
#include "actors/worker/parameter_sources.hpp"
#include "actors/worker/slot_trials.hpp"
#include "actors/worker/subtree_sum.hpp"
#include "actors/worker/worker_actions.hpp"
#include "data/prefetcher.hpp"
#include "engine/computer.hpp"
#include "transport/gradient_pool.hpp"
#include "transport/joined_parameters.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::worker {

/// The sum of gradients over a subtree of slots, in a buffer that PS shards can map.
struct computed_gradient {
  transport::pooled_gradient buffer;
  transport::gradient_header header;
};

/// Not thread-safe: after create() only the compute thread calls it.
class trainer {
public:
  /// Told while a gradient is computed: it will be `header`'s, in this buffer, where every float
  /// from `from` on is final.
  using part_listener = std::function<void(const transport::pooled_gradient& buffer,
                                           const transport::gradient_header& header, std::uint64_t from)>;

  /// Opens the data and makes the computer. `progress` may be null. @returns bad_data, bad_spec,
  /// system, or as make_computer_at().
  static result<std::unique_ptr<trainer>> create(std::shared_ptr<const common::job_context> job,
                                                 worker_id worker, dlrun::incarnation incarnation,
                                                 std::shared_ptr<transport::segment_offers> server,
                                                 std::shared_ptr<common::progress_word> progress);

  /// What it computes on, as placed_computer says it.
  const std::string& device() const { return device_; }
  /// As computer::host_layers().
  std::vector<std::string> host_layers() const { return computer_->host_layers(); }
  /// As computer::host_time().
  std::chrono::nanoseconds host_time() const { return computer_->host_time(); }

  /// As computer::take_remarks().
  std::vector<std::string> take_remarks() { return computer_->take_remarks(); }

  /// Copies version `version` of the shard's part into memory; false if `source` does not serve it
  /// any more.
  bool copy_part(const parameter_source& source, ps_shard_id shard, timeline_id timeline, version_id version);

  /// Sum of the gradients of `what.slots` (a node of the step's reduction tree) in tree order, from
  /// exactly version_before(step): read in place from `shards`, the parameters of all PS shards in
  /// their order, or, where that is empty, from parts that have all been copied. That of a slot in
  /// `what.parked` is zero, and it has no records; of others records are left out. The records of
  /// suspects are tried first.
  /// @returns limit_exceeded when all buffers are kept; diverged when a layer refuses what it is
  /// given (see diverged_slot(), whose records the message names); role_lost when a PS shard does
  /// not serve that version any more, or wrote over it meanwhile. `tell` may be null; else it hears
  /// of each further quarter of the gradient, but for the end.
  result<computed_gradient> compute(const compute_gradient& what, const std::vector<parameter_source>& shards,
                                    const part_listener& tell);
  /// Looks at `sum`, what a compute() made of the version that the last one computed from.
  /// @returns diverged when a loss or gradient is NaN or infinite (see diverged_slot(), whose
  /// records the message names), or only the sum is.
  result<void> check_finite(const compute_gradient& what, std::span<const float> sum);
  /// Of the last compute() or check_finite(): the slot that it found to diverge.
  std::optional<slot_id> diverged_slot() const { return diverged_slot_; }

private:
  /// Parameters in place that the computer was told of, and what keeps them mapped for as long.
  struct announced_parameters {
    std::shared_ptr<const transport::parameter_reader> reader; ///< null: joined_ does
    const float* at = nullptr;
    std::shared_ptr<void> told;

    void take_back() {
      told.reset(); // before the memory goes
      reader.reset();
      at = nullptr;
    }
  };

  trainer(std::shared_ptr<const common::job_context> job, worker_id worker, dlrun::incarnation incarnation,
          std::shared_ptr<const data::dataset> training, std::optional<data::augmentation> change,
          engine::placed_computer computer, std::shared_ptr<transport::segment_offers> server,
          std::shared_ptr<common::progress_word> progress);
  std::span<float> part_of(version_id version, ps_shard_id shard);
  std::uint64_t request_records(const compute_gradient& what);
  result<void> read_version(timeline_id timeline, step_id step, const std::vector<parameter_source>& shards);
  result<void> sum_subtree(const compute_gradient& what, engine::computer_vector& out,
                           const subtree_sum::progress& tell);
  result<void> compute_slot(const compute_gradient& what, slot_id slot, engine::computer_vector& out,
                            const subtree_sum::progress& tell);
  result<void> compute_some(step_id step, slot_id slot, const std::vector<std::uint32_t>& places,
                            const protocol::slot_progress& at, engine::computer_vector& out,
                            const subtree_sum::progress& tell);
  result<void> try_records(const protocol::suspect_slot& suspect, const std::vector<std::uint32_t>& places);
  result<void> forward_backward(step_id step, slot_id slot, engine::computer_vector& out,
                                const subtree_sum::progress& tell);
  std::vector<std::uint32_t> places_in(const compute_gradient& what, slot_id slot) const;
  bool is_in_place_still() const;
  void announce(version_id version);
  std::span<float> begin_write(transport::pooled_gradient& buffer);
  result<void> diverged_at(step_id step, slot_id slot, const std::string& what);
  std::string describe_loss(std::span<const float> gradient) const;
  std::string name_records(step_id step, slot_id slot) const;

  std::shared_ptr<const common::job_context> job_;
  std::shared_ptr<common::progress_word> progress_; ///< or null
  worker_id worker_;
  dlrun::incarnation incarnation_;
  data::prefetcher prefetcher_;
  std::unique_ptr<engine::computer> computer_;
  std::string device_;
  subtree_sum sums_;
  transport::gradient_pool gradients_;
  /// Version v in [v % 2]; the core holds at most two adjacent versions. Empty where they are read
  /// in place.
  std::array<std::vector<float>, 2> parameters_;
  transport::joined_parameters joined_;
  std::optional<transport::joined_view> view_;    ///< of these, if they are in place
  std::array<announced_parameters, 2> announced_; ///< of even and odd versions
  data::microbatch microbatch_;
  std::optional<slot_id> diverged_slot_;
};

} // namespace dlrun::worker
