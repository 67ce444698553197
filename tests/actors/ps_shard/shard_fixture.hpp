/// The numbers of a PS shard as training makes them, and their records for the log.
#pragma once

#include "actors/ps_shard/norm_exchange.hpp"
#include "actors/ps_shard/step_log.hpp"
#include "actors/ps_shard/store_transfer.hpp"
#include "tests/actors/small_job.hpp"

#include <bit>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::test {

/// A root that is there.
inline ps_shard::root_source whole_root(std::span<const float> root) {
  return [root](std::uint64_t begin, std::uint64_t end) { return root.subspan(begin, end - begin); };
}

/// Trains one PS shard, the job's only one where it clips by norm, with made-up gradients, which
/// follow from the step alone.
class training_shard {
public:
  explicit training_shard(std::shared_ptr<const common::job_context> job, ps_shard_id shard = {0})
      : training_shard(job, ps_shard::shard_parameters::create(job, shard).value()) {}
  /// Goes on from what `made` holds.
  training_shard(std::shared_ptr<const common::job_context> job, ps_shard::shard_parameters made)
      : job_(std::move(job))
      , parameters(std::move(made)) {}

  /// Applies the next step, of one timeline and revision. @returns its record for the log.
  ps_shard::step_to_log train(std::uint64_t revision = 0, timeline_id timeline = {0},
                              const std::vector<protocol::parked_slot>& parked = {}) {
    const auto step = step_from(version);
    const auto root = std::make_shared<std::vector<float>>(root_of(step));
    auto shape = common::shape_of(job_->sampler, step, revision, parked);
    const auto partials = job_->couples() ? parameters.measure(shape, *root) : ps_shard::norm_partials{};
    const auto coupled = job_->couples() ? ps_shard::norm_of({partials}) : 0;
    shape.norm = std::bit_cast<double>(coupled);
    ++ledger.steps_applied;
    ledger.samples_applied += shape.records;
    parameters.notes().note({step, partials, ledger});
    const auto made = parameters.apply(timeline, step, shape, whole_root(*root), {}).value();
    if (made) metrics.add(job_->sampler.epoch_of(step), *made);
    version = version_after(step);
    return {step, timeline, encode(common::step_extra{revision, coupled, partials, ledger}), *root, root, {}};
  }

  /// SHA-256 of everything that the shard has.
  std::string digests() const { return digests_of(parameters); }
  static std::string digests_of(const ps_shard::shard_parameters& numbers) {
    const auto& range = numbers.range();
    return numbers.digests(range.first_block, range.last_block - range.first_block).value();
  }

private:
  std::vector<float> root_of(step_id step) const {
    std::vector<float> root(parameters.range().size);
    for (std::size_t i = 0; i < root.size(); ++i)
      root[i] = static_cast<float>((i * 31 + step.value * 17) % 101) / 64.0F;
    return root;
  }

  std::shared_ptr<const common::job_context> job_;

public:
  ps_shard::shard_parameters parameters;
  version_id version;
  ps_shard::epoch_metrics metrics;
  protocol::applied_ledger ledger;
};

} // namespace dlrun::test
