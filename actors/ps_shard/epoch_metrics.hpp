/// Training metrics of the epoch in hand, summed step by step.
#pragma once

#include "actors/protocol/status_messages.hpp"

#include <bit>
#include <dlrun/check.hpp>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// Training metrics of one step, as the reduction tree summed them.
struct step_metrics {
  double loss_sum = 0;
  std::uint64_t records = 0;
  std::vector<double> sums{}; ///< of the model's metric_set
};

/// Steps must be added in order: the sums are part of what must be the same bits in every run.
class epoch_metrics {
public:
  epoch_metrics() = default;
  explicit epoch_metrics(std::optional<protocol::training_metrics> sums)
      : sums_(sums) {}

  void add(std::uint64_t epoch, const step_metrics& step) {
    if (!sums_ || sums_->epoch != epoch)
      sums_ = protocol::training_metrics{.epoch = epoch,
                                         .sum_bits = std::vector<std::uint64_t>(step.sums.size())};
    DLRUN_CHECK(sums_->sum_bits.size() == step.sums.size(), "{} sums of metrics, then {}",
                sums_->sum_bits.size(), step.sums.size());
    add(sums_->loss_sum_bits, step.loss_sum);
    for (std::size_t i = 0; i < step.sums.size(); ++i) add(sums_->sum_bits[i], step.sums[i]);
    sums_->records += step.records;
    if (step.records == 0) return; // all of it was left out
    sums_->step_loss_bits = std::bit_cast<std::uint64_t>(step.loss_sum / static_cast<double>(step.records));
  }
  /// Nothing before the first step, and on shards that do not own the metric block.
  const std::optional<protocol::training_metrics>& sums() const { return sums_; }

private:
  static void add(std::uint64_t& bits, double more) {
    bits = std::bit_cast<std::uint64_t>(std::bit_cast<double>(bits) + more);
  }

  std::optional<protocol::training_metrics> sums_;
};

} // namespace dlrun::ps_shard
