/// What a PS shard says of itself: progress, ledger, durable state, figures. The rules of
/// messages.hpp hold.
#pragma once

#include "actors/protocol/rewind_messages.hpp"
#include "actors/protocol/roles.hpp"

#include <string>
#include <vector>

namespace dlrun::protocol {

/// Training metrics of one step or one epoch, as the reduction tree summed them. Only the shard
/// that owns the metric block has them. Doubles travel as bit patterns.
struct training_metrics {
  std::uint64_t epoch = 0;         ///< 0-based epoch the sums belong to
  std::uint64_t loss_sum_bits = 0; ///< std::bit_cast of a double: sum over records so far in the epoch
  std::uint64_t records = 0;
  std::uint64_t step_loss_bits = 0; ///< std::bit_cast of a double: mean loss of the newest step
  std::vector<std::uint64_t>
      sum_bits{}; ///< the same, of the model's metric_set; engine::metric_set::floats()

  bool operator==(const training_metrics&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, training_metrics& x) {
    return f(x.epoch, x.loss_sum_bits, x.records, x.step_loss_bits, x.sum_bits);
  }
};

/// Which training samples a shard has applied, recomputed from the tensors it summed and not from
/// what senders say.
struct applied_ledger {
  std::uint64_t steps_applied = 0;      ///< updates made, repeated ones included
  std::uint64_t steps_redone = 0;       ///< of those, steps that had been applied before
  std::uint64_t samples_applied = 0;    ///< records whose gradient is in the parameters
  std::uint64_t samples_missing = 0;    ///< records of applied steps that are not
  std::uint64_t samples_duplicated = 0; ///< records that are in more than once

  bool operator==(const applied_ledger&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, applied_ledger& x) {
    return f(x.steps_applied, x.steps_redone, x.samples_applied, x.samples_missing, x.samples_duplicated);
  }
};

/// A worker's first contribution under an incarnation, as a shard saw it (for "the replacement
/// contributes after ... ms").
struct first_contribution {
  worker_id worker;
  dlrun::incarnation incarnation;
  step_id step;

  bool operator==(const first_contribution&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, first_contribution& x) {
    return f(x.worker, x.incarnation, x.step);
  }
};

/// Time from version to version, microseconds, since a PS shard's start.
struct step_time_quantiles {
  std::uint64_t p50_us = 0, p99_us = 0, max_us = 0;

  bool operator==(const step_time_quantiles&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, step_time_quantiles& x) {
    return f(x.p50_us, x.p99_us, x.max_us);
  }
};

/// The store of a PS shard (R24).
struct store_standing {
  std::string host;           ///< that has it
  std::uint64_t identity = 0; ///< 0: there is none, nothing is kept on disk
  version_id floor;           ///< what is below may have been dropped

  bool operator==(const store_standing&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, store_standing& x) {
    return f(x.host, x.identity, x.floor);
  }
};

/// The same as a start of the PS shard found it.
struct opened_store {
  store_standing store;
  dlrun::incarnation opener; ///< who had opened it before; 0: it is new
  timeline_id timeline;      ///< its newest
  version_id newest;         ///< that it can restore
  std::string why_new;       ///< why it has another identity since; "" when it has not

  template <class Inspector>
  friend auto inspect(Inspector& f, opened_store& x) {
    return f(x.store, x.opener, x.timeline, x.newest, x.why_new);
  }
};

/// PS shard -> dispatcher, periodic and on demand. Highest (incarnation, sequence) wins.
struct shard_status {
  ps_shard_id shard;
  fence self;
  std::uint64_t sequence = 0;
  timeline_id timeline;
  version_id applied;
  version_id committed;
  applied_ledger ledger;
  bool has_metrics = false;
  training_metrics metrics{};
  std::vector<first_contribution> contributions{}; ///< newest incarnation of each worker seen so far
  durability_status durable{};
  std::uint64_t probe = 0; ///< of the probe that this answers, 0 = none
  /// Payload written to its log and its snapshots since its start.
  std::uint64_t bytes_logged = 0, bytes_snapshotted = 0;
  /// As in copies_word.
  std::uint64_t bytes_copied = 0, copy_waited_us = 0;
  step_time_quantiles step_times{};
  store_standing store{};

  template <class Inspector>
  friend auto inspect(Inspector& f, shard_status& x) {
    return f(x.shard, x.self, x.sequence, x.timeline, x.applied, x.committed, x.ledger, x.has_metrics,
             x.metrics, x.contributions, x.durable, x.probe, x.bytes_logged, x.bytes_snapshotted,
             x.bytes_copied, x.copy_waited_us, x.step_times, x.store);
  }
};

} // namespace dlrun::protocol
