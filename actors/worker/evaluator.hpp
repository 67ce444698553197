/// Evaluates versions of the model on the validation set, beside the training.
#pragma once

#include "actors/common/job_context.hpp"
#include "data/dataset.hpp"
#include "inference/forward_pass.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace dlrun::worker {

/// Has a model at work and parameters of its own, from its first evaluation on. Not thread-safe:
/// after create() only the evaluation thread calls it.
class evaluator {
public:
  /// Opens the validation set of a job that has one. @returns bad_data, bad_spec or system.
  static result<std::unique_ptr<evaluator>> create(std::shared_ptr<const common::job_context> job,
                                                   worker_id worker, dlrun::incarnation incarnation);

  /// Memory for the parameters of a shard, to be filled before run().
  std::span<float> part_of(ps_shard_id shard);

  /// Loss and metrics over the whole validation set, at the parameters that were filled in.
  /// @returns as forward_pass::evaluate().
  result<protocol::evaluated> run(const protocol::evaluate& of, const std::atomic<bool>& cancelled);

private:
  evaluator(std::shared_ptr<const common::job_context> job, worker_id worker, dlrun::incarnation incarnation,
            std::shared_ptr<const data::dataset> validation);

  std::shared_ptr<const common::job_context> job_;
  worker_id worker_;
  dlrun::incarnation incarnation_;
  std::shared_ptr<const data::dataset> validation_;
  inference::forward_pass pass_;
  std::vector<float> parameters_; ///< empty before the first evaluation
};

} // namespace dlrun::worker
