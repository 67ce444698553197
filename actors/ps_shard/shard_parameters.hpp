/// The numbers of a PS shard: parameters in two versions, optimizer state, and the update that makes the next
/// version.
#pragma once

#include "actors/common/job_context.hpp"
#include "transport/parameter_segment.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlrun::ps_shard {

/// Training metrics of one step, as the reduction tree summed them.
struct step_metrics {
  double loss_sum = 0;
  std::uint64_t correct = 0;
  std::uint64_t records = 0;
};

/// Not thread-safe: after create() only the value thread calls it, except shared() and range().
class shard_parameters {
public:
  /// Memory for the shard's range of the model and version 0 in it. @returns system when memory cannot be
  /// had.
  static result<shard_parameters> create(const common::job_context& job, ps_shard_id shard);

  /// Applies step `step`: `root` (range().size floats) is the sum of its gradients over all records. Writes
  /// into the buffer of the older version and, if `intact()` (may be empty) holds after that, publishes it.
  /// @returns protocol when `root` changed meanwhile; else the metrics, when this shard owns the metric
  /// block.
  result<std::optional<step_metrics>> apply(timeline_id timeline, step_id step, std::span<const float> root,
                                            const std::function<bool()>& intact);

  /// SHA-256 of (block number, parameters, optimizer state) of each block in [first, first + count), 32 bytes
  /// each. Blocks are numbered over the whole model. @returns bad_usage for blocks that are not this shard's.
  result<std::string> digests(std::uint32_t first, std::uint32_t count) const;

  const engine::shard_range& range() const { return range_; }
  const transport::segment& shared() const { return writer_.shared(); }

private:
  struct owned_block {
    engine::block block;
    std::uint64_t offset = 0; ///< within the shard's range
    std::uint64_t state_offset = 0;
    float momentum = 0; ///< of a buffer
  };

  shard_parameters(const common::job_context& job, ps_shard_id shard, transport::parameter_writer writer,
                   engine::optimizer optimizer);
  void update(const owned_block& owned, step_id step, std::span<const float> root, std::span<float> out);
  std::span<float> state_of(const owned_block& owned);

  data::sampler sampler_;
  engine::shard_range range_;
  transport::parameter_writer writer_;
  engine::optimizer optimizer_;
  std::vector<owned_block> blocks_;
  std::vector<float> state_;
};

} // namespace dlrun::ps_shard
