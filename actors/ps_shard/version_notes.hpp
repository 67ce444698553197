/// What goes beside the versions of a PS shard in memory that outlives it (rule R36).
#pragma once

#include "actors/common/store_extras.hpp"
#include "actors/ps_shard/epoch_metrics.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <optional>
#include <string>

namespace dlrun::ps_shard {

/// Of one version after the other. Used by one thread.
class version_notes {
public:
  /// Of a shard with these blocks and numbers (snapshot_extra), in a job with so many sums of
  /// metrics.
  version_notes(const engine::shard_range& range, std::size_t image_floats, std::size_t metric_sums);

  /// Most bytes of a word() of it.
  std::size_t bytes_max() const;

  /// It stands at a version that is of `epoch`'s metrics and that ledger.
  void restart(const std::optional<protocol::training_metrics>& metrics,
               const protocol::applied_ledger& ledger, std::map<step_id, norm_partials> partials);
  /// What the core knows of the step that is applied next.
  void note(const retain& what) { next_ = what; }
  /// The step has been applied, with these metrics where the shard owns the metric block. @returns
  /// what goes beside the version that it made; nothing when the core has said nothing of it.
  std::string after(step_id step, std::uint64_t epoch, const std::optional<step_metrics>& metrics);

private:
  common::retained_extra extra_;
  std::size_t metric_sums_;
  epoch_metrics metrics_;
  std::optional<retain> next_;
};

} // namespace dlrun::ps_shard
