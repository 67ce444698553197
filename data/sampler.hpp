/// Which records are in which microbatch.
#pragma once

#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <vector>

namespace dlrun::data {

struct sampler_options {
  std::uint64_t seed = 1;
  bool shuffle = true;
  std::uint64_t record_count = 0;
  std::uint64_t microbatch_size = 32;
  /// K, the number of slots of a full step.
  std::uint32_t microbatches_per_step = 4;
  std::uint64_t epochs = 1;
};

/// The options that a filled specification asks for, on a data set of `record_count` records.
sampler_options sampler_options_from(const spec::TrainSpec& train, std::uint64_t record_count);

/// Pure function (seed, epoch, step, slot) -> records: never of who asks, or when. Immutable,
/// thread-safe, cheap to copy. Each epoch goes through a permutation of all records, cut into steps
/// of K microbatches. The last step of an epoch is kept when the records do not fill it: it then
/// has fewer slots, and its last slot may have fewer records. So every record is used exactly once
/// an epoch, and no step mixes two epochs.
class sampler {
public:
  /// All numbers must be at least 1; the total number of steps must fit 63 bits.
  explicit sampler(const sampler_options& options);

  const sampler_options& options() const { return options_; }
  /// ceil(record_count / (microbatch_size * K)).
  std::uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::uint64_t total_steps() const { return steps_per_epoch_ * options_.epochs; }
  /// Epoch of a step, 0-based. `step` must be < total_steps(), here and below.
  std::uint64_t epoch_of(step_id step) const;

  /// Slots of the step that hold records: K, or fewer in the last step of an epoch; never 0.
  std::uint32_t slots(step_id step) const;
  /// Records of all slots of the step: what the sum of its gradients is divided by.
  std::uint64_t records_in_step(step_id step) const;
  /// Records of one slot; 0 for slots from slots(step) to K - 1.
  std::uint64_t records_in_slot(step_id step, slot_id slot) const;
  /// Records of all steps before that version: those of whole epochs, each time anew, and of the
  /// steps since.
  std::uint64_t records_up_to(version_id version) const;
  /// Replaces `out` by the slot's record indices, in order.
  void records(step_id step, slot_id slot, std::vector<std::uint64_t>& out) const;

private:
  struct range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  /// Places in the epoch's order, half open.
  range slot_range(step_id step, slot_id slot) const;
  range step_range(step_id step) const;

  sampler_options options_;
  std::uint64_t records_per_step_;
  std::uint64_t steps_per_epoch_;
};

/// Evaluation goes through all records in file order, in microbatches of `microbatch_size`; the
/// last may be smaller.
class validation_sampler {
public:
  validation_sampler(std::uint64_t record_count, std::uint64_t microbatch_size);

  /// Number of microbatches.
  std::uint64_t slots() const;
  std::uint64_t records_in_slot(std::uint64_t slot) const;
  /// Replaces `out` by the record indices of microbatch `slot`, which must be < slots().
  void records(std::uint64_t slot, std::vector<std::uint64_t>& out) const;

private:
  std::uint64_t record_count_;
  std::uint64_t microbatch_size_;
};

} // namespace dlrun::data
