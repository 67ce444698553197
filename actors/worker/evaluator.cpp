#include "actors/worker/evaluator.hpp"

#include "actors/protocol/bit_patterns.hpp"

#include <bit>

namespace dlrun::worker {
namespace {

/// On what the worker trains on.
inference::pass_options pass_options_of(const common::job_context& job, worker_id worker) {
  auto options = inference::options_from(job.spec);
  options.place = job.place_of(worker);
  return options;
}

} // namespace

result<std::unique_ptr<evaluator>> evaluator::create(std::shared_ptr<const common::job_context> job,
                                                     worker_id worker, dlrun::incarnation incarnation) {
  auto validation = common::open_dataset(*job, data::data_part::validation);
  if (!validation) return tl::unexpected(validation.error());
  return std::unique_ptr<evaluator>(
      new evaluator(std::move(job), worker, incarnation, std::move(*validation)));
}

evaluator::evaluator(std::shared_ptr<const common::job_context> job, worker_id worker,
                     dlrun::incarnation incarnation, std::shared_ptr<const data::dataset> validation)
    : job_{std::move(job)}
    , worker_{worker}
    , incarnation_{incarnation}
    , validation_{std::move(validation)}
    , pass_{job_->model, pass_options_of(*job_, worker)} {}

std::span<float> evaluator::part_of(ps_shard_id shard) {
  if (parameters_.empty()) parameters_.resize(job_->model->layout().flat_size());
  const auto& range = job_->shards.at(shard.value);
  return std::span{parameters_}.subspan(range.offset, range.size);
}

result<protocol::evaluated> evaluator::run(const protocol::evaluate& of, const std::atomic<bool>& cancelled) {
  const auto found = pass_.evaluate(parameters_, *validation_, &cancelled);
  if (!found) return tl::unexpected(found.error());
  std::vector<double> values;
  for (const auto& [name, value] : found->metrics) values.push_back(value);
  protocol::evaluated made{
      .worker = worker_, .incarnation = incarnation_, .timeline = of.timeline, .version = of.version};
  made.records = found->records;
  made.loss_sum_bits = std::bit_cast<std::uint64_t>(found->loss_sum);
  made.metric_bits = protocol::to_bits(values);
  return made;
}

} // namespace dlrun::worker
